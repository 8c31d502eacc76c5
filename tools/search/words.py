import re,unicodedata,functools,snowballstemmer
ST=snowballstemmer.stemmer('english')
STOP=set("""a about above after again all also am an and any are as at be been before being but by can could did do does
 doing for from had has have having he her here him his how i if in into is it its just may me might more most
 must my no nor not of on only or our ours out over own please she should so some such than that the their them
 then there these they this those through to too under up upon us very was we were what when where which while
 who whom whose why will with would you your yours s t re ve ll d m""".split())
@functools.lru_cache(None)
def stem(w):
    if len(w.encode())<3 or any(c.isdigit() for c in w): return w
    s=ST.stemWord(w)
    return s
def is_cjk(c): 
    o=ord(c); return 0x3040<=o<=0x30ff or 0x3400<=o<=0x9fff or 0xac00<=o<=0xd7a3
def raw(text):
    text=unicodedata.normalize('NFKC',text); out=[]
    for run in re.findall(r'[^\W_]+',text):
        for part in re.findall(r'[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+|[^\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+',run):
            if is_cjk(part[0]):
                out+= [part] if len(part)==1 else [part[i:i+2] for i in range(len(part)-1)]
                continue
            ps=re.findall(r'[A-Z]+(?![a-z])|[A-Z]?[^A-Z\d]+|\d+',part) if not part.islower() or any(c.isdigit() for c in part) else [part]
            if len(ps)>1: out+=[p.lower() for p in ps]
            out.append(part.lower())
    return out
def toks(text): 
    r=raw(text); k=[w for w in r if w not in STOP]
    return [stem(w) for w in (k or r)]
def stems_of(text, language):
    if language=='english': return [w for w in toks(text)]
    if language in ('han','kana','hangul'): return [w for w in raw(text)]
    s=snowballstemmer.stemmer(language)
    out=[]
    for w in raw(text):
        k=s.stemWord(w) if len(w.encode())>=3 else w
        out.append(''.join(c for c in unicodedata.normalize('NFD',k) if not 0x300<=ord(c)<=0x36f).replace('ı','i') if not is_cjk(k[0]) and ord(k[0])<0x400 else k)
    return out
