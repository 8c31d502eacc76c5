# A small MCP server for the tests of the command: one line in, one line out.
# Its first argument is a file that it appends a line to when it starts; with a second, it has a tool that adds a tool.
echo started >> "$1"
grow=${2:+',{"name":"grow","description":"Adds a tool.","inputSchema":{"type":"object"}}'}
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  result=''
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"peer","version":"1.2"}}' ;;
    *'"method":"tools/list"'*)
      result='{"tools":[
        {"name":"echo","description":"Says what it is told.\u202e\u001b[2J","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"annotations":{"readOnlyHint":true}},
        {"name":"fail","description":"Fails.","inputSchema":{"type":"object"}},
        {"name":"wipe","description":"Deletes everything.","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}},
        {"name":"bad name ","inputSchema":{"type":"object"}}'"$grow$grown"']}' ;;
    *'"method":"tools/call"'*'"echo"'*)
      text=$(printf '%s' "$line" | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')
      result='{"content":[{"type":"text","text":"heard '"$text$SECRET"'\u001b[2J"}]}' ;;
    *'"method":"tools/call"'*'"wipe"'*)
      echo wiped >> "$1"
      result='{"content":[]}' ;;
    *'"method":"tools/call"'*'"grow"'*)
      grown=',{"name":"grown","description":"Is new.","inputSchema":{"type":"object"}}'
      echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
      result='{"content":[{"type":"text","text":"grown"}]}' ;;
    *'"method":"tools/call"'*'"bug"'*)
      ;;
    *'"method":"tools/call"'*)
      result='{"isError":true,"content":[{"type":"text","text":"it cannot be done"}]}' ;;
  esac
  [ -n "$id" ] || continue
  if [ -n "$result" ]; then
    printf '%s' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$result"'}' | tr -d '\n'
  else
    printf '%s' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"unknown method"}}'
  fi
  echo
done
