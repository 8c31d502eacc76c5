"""Writes the Chinese, Japanese and Turkish sets: queries written by hand for this project over captured tools, whose texts are
English, and over the tools of `translated_tools.txt`, whose texts are in the language; and the English set, with the twins of the
latter: the same tools with English texts, and the same questions (`pair`).

    python multilingual.py ../../tests/data/search
"""

import json
import pathlib
import re
import sys
from collections import defaultdict

from words import STOP

LANGUAGES = {"zh": "chinese", "ja": "japanese", "tr": "turkish", "en": "english"}

# For each captured tool a query in each language.
QUERIES = """
fetch:fetch | 抓取一个网址的内容 | URLの内容を取得する | bir web adresinin içeriğini getir
filesystem:create_directory | 新建一个文件夹 | 新しいフォルダを作成 | yeni bir klasör oluştur
filesystem:directory_tree | 以树形显示目录结构 | ディレクトリ構造をツリーで表示 | dizin yapısını ağaç olarak göster
filesystem:edit_file | 编辑文本文件中的几行 | テキストファイルの行を編集 | metin dosyasındaki satırları düzenle
filesystem:get_file_info | 查看文件的大小和修改时间 | ファイルの詳細情報を取得 | dosya hakkında ayrıntılı bilgi al
filesystem:list_allowed_directories | 允许访问哪些目录 | アクセスが許可されたディレクトリ一覧 | izin verilen klasörleri listele
filesystem:list_directory | 列出文件夹里的所有文件 | フォルダの中身を一覧表示 | klasördeki dosyaları listele
filesystem:list_directory_with_sizes | 列出目录内容以及文件大小 | ファイルサイズ付きでディレクトリを一覧 | klasördeki dosyaları boyutlarıyla listele
filesystem:move_file | 移动或重命名文件 | ファイルを移動する | dosyayı başka klasöre taşı
filesystem:read_media_file | 读取图片文件 | 画像ファイルを読み取る | resim dosyası oku
filesystem:read_multiple_files | 同时读取多个文件 | 複数のファイルを同時に読む | birden fazla dosyayı birlikte oku
filesystem:read_text_file | 读取文本文件的内容 | テキストファイルを読む | metin dosyasını oku
filesystem:search_files | 按名称查找文件 | ファイルを検索する | dosya ara
filesystem:write_file | 把内容写入文件 | ファイルに書き込む | dosyaya yaz
git:git_branch | 列出 git 分支 | gitのブランチ一覧 | git dallarını listele
git:git_checkout | 切换 git 分支 | gitでブランチを切り替える | git dal değiştir
git:git_commit | 提交代码更改 | 変更をコミットする | değişiklikleri commit et
git:git_create_branch | 创建新的 git 分支 | gitで新しいブランチを作成 | git'te yeni dal oluştur
git:git_diff | 比较两个分支的差异 | ブランチ間の差分を比較 | dallar arasındaki farkları karşılaştır
git:git_diff_staged | 显示已暂存的更改 git | ステージ済みの変更を表示 git | git commit için hazırlanan staged değişiklikleri göster
git:git_log | 查看 git 提交历史 | gitのコミット履歴を見る | git commit geçmişini göster
git:git_status | git 仓库当前状态 | gitのステータスを確認 | git durumunu göster
git:git_show | 显示某个 commit 的内容 | コミットの内容を表示 | bir commit'in içeriğini göster
memory:create_entities | 在知识图谱中创建实体 entities | ナレッジグラフにエンティティを作成 entities | bilgi grafiğinde yeni varlıklar oluştur entities
memory:delete_relations | 删除 graph 中的关系 relations | グラフから relations を削除 | grafikten relations sil
memory:read_graph | 读取整个知识 graph | グラフ全体を読む graph | tüm bilgi grafiğini oku
memory:search_nodes | 搜索知识图谱中的节点 nodes | グラフの nodes を検索 | bilgi grafiğinde nodes ara
sqlite:append_insight | 添加业务洞察到备忘录 insight | メモに insight を追加 | nota iş insight ekle
sqlite:create_table | 在数据库里新建一张表 table | データベースに新しいテーブルを作成 | veritabanında yeni tablo oluştur
sqlite:describe_table | 查看表结构 schema | テーブルのスキーマ schema を確認 | tablonun schema bilgisini getir
sqlite:list_tables | 列出数据库中的所有表 tables | データベースのテーブル一覧 | veritabanındaki tabloları listele
sqlite:read_query | 执行 SELECT 查询 | SELECTクエリを実行 | SELECT sorgusu çalıştır
sqlite:write_query | 执行 INSERT 或 DELETE | INSERT文を実行 | INSERT veya DELETE sorgusu çalıştır
time:convert_time | 转换不同时区的时间 | 時間をタイムゾーン間で変換 | saat dilimleri arasında zamanı dönüştür
time:get_current_time | 现在的时间 | 現在の時刻を取得 | şu anki saati getir
gitlab:create_or_update_file | 在 gitlab 项目中更新文件 | gitlabプロジェクトのファイルを更新 | gitlab projesinde dosya güncelle
gitlab:search_repositories | 搜索 gitlab 仓库 | gitlabのリポジトリを検索 | gitlab deposu ara
gitlab:create_repository | 新建 gitlab 仓库 | gitlabに新しいリポジトリを作成 | gitlab'da yeni depo oluştur
gitlab:get_file_contents | 获取 gitlab 仓库文件的内容 | gitlabのファイルの内容を取得 | gitlab projesinden dosya içeriği al
gitlab:push_files | 推送 push 多个文件到 gitlab | gitlabにファイルをpush | gitlab'a dosya gönder push
gitlab:create_issue | 在 gitlab 创建问题 | gitlabにイシューを作成 | gitlab'da yeni sorun kaydı oluştur
gitlab:create_merge_request | 创建合并请求 merge request | マージリクエスト merge request を作成 | merge request oluştur
gitlab:fork_repository | fork 一个 gitlab 仓库 | gitlabのリポジトリをfork | gitlab deposunu fork et
gitlab:create_branch | 在 gitlab 创建分支 | gitlabでブランチを作成 | gitlab'da yeni dal aç
markitdown:convert_to_markdown | 把文档转换成 markdown | ドキュメントをmarkdownに変換 | belgeyi markdown'a dönüştür
"""



def translated():
    """For each line of `translated_tools.txt` its concept, language, name, text, questions of its own language and English ones."""
    concept = ""
    for line in open(pathlib.Path(__file__).parent / "translated_tools.txt", encoding="utf-8"):
        line = line.strip()
        if line.startswith("["):
            concept = line.strip("[]")
        elif line and not line.startswith("#"):
            head, text, *asked = [part.strip() for part in line.split("|")]
            language, name = head.split()
            english = [question.removeprefix("en:") for question in asked if question.startswith("en:")]
            own = [question for question in asked if not question.startswith("en:")]
            yield concept, language, name, text, own, english


def says_words(query, tool):
    """Whether a question says a whole word of its tool, in whatever form: by spelling alone, and not by what a search makes of it.
    Of Chinese and Japanese two characters in a row, of others four letters at the start of a word, or all of three."""
    query, tool = (text.lower().replace("_", " ") for text in (query, f"{tool['name']} {tool['description']}"))
    pairs = {pair for pair in map("".join, zip(query, query[1:])) if re.fullmatch(r"[\u30a0-\u30ff\u3400-\u9fff]{2}", pair)}
    starts = {word[:4] for word in re.findall(r"\w+", query) if len(word) > 2 and word not in STOP}
    return any(pair in tool for pair in pairs) or bool(starts & {word[:4] for word in re.findall(r"\w+", tool)})


def main():
    out = pathlib.Path(sys.argv[1])
    captured = [json.loads(line) for line in open(out / "golden/tools.jsonl", encoding="utf-8")]
    tools = [{key: tool[key] for key in ("id", "server", "name", "description")} for tool in captured]
    for server in ("gitlab", "markitdown"):
        name = {"gitlab": "server-gitlab", "markitdown": "markitdown"}[server]
        for tool in json.load(open(out / f"../tools/{name}.json", encoding="utf-8")):
            tools.append({"id": f"{server}:{tool['name']}", "server": server} | {key: tool[key] for key in ("name", "description")})
    known = {tool["id"] for tool in tools}
    # Of a pair both must say one, or neither is counted.
    whole = defaultdict(lambda: True)
    for concept, language, name, text, asked, _ in translated():
        for number, query in enumerate(asked, 1):
            said = says_words(query, {"name": name, "description": text})
            whole[language, f"{concept} {number}"] = said
    for at, (code, language) in enumerate(LANGUAGES.items()):
        own, queries = [], []
        if code != "en":
            for line in QUERIES.strip().splitlines():
                gold, *texts = [part.strip() for part in line.split("|")]
                assert gold in known, gold
                queries.append({"query": texts[at], "gold": [gold], "kind": "captured"})
        for concept, of, name, text, asked, english in translated():
            if of != code:
                continue
            gold = f"local:{name}"
            own.append({"id": gold, "server": "local", "name": name, "description": text})
            for number, query in enumerate(asked, 1):
                pair = f"{concept} {number}"
                kind = "own" if whole[code, pair] and whole["en", pair] else "own, in other words"
                queries.append({"query": query, "gold": [gold], "kind": kind, "pair": pair})
            queries += [{"query": query, "gold": [gold], "kind": "crossing"} for query in english]
        (out / language).mkdir(exist_ok=True)
        for file, lines in (("tools", tools + own), ("queries", queries)):
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            (out / language / f"{file}.jsonl").write_text(text, encoding="utf-8")


main()
