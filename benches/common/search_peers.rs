//! What the search is measured against: the crates `bm25` and tantivy, over the same tools.

use aster_runtime::View;
use aster_runtime::catalogue::Tool;

/// What a ranker answers: the places of the tools, best first.
pub(crate) type Rank = Box<dyn Fn(&str) -> Vec<usize>>;

/// All of a tool's words in one text, as a ranker without fields gets them.
fn flat(tool: &Tool) -> String {
    let mut text = format!(
        "{} {} {}",
        tool.id().server(),
        tool.id().tool().replace(['_', '-', '.'], " "),
        tool.description()
    );
    for (name, property) in tool.input_schema()["properties"].as_object().into_iter().flatten() {
        text.push_str(&format!(
            " {} {}",
            name.replace(['_', '-'], " "),
            property["description"].as_str().unwrap_or_default()
        ));
    }
    text
}

/// The crate `bm25` as it comes.
pub(crate) fn bm25(view: &View, depth: usize) -> Rank {
    let documents = view
        .tools()
        .iter()
        .enumerate()
        .map(|(place, tool)| ::bm25::Document { id: place as u32, contents: flat(tool) });
    let engine =
        ::bm25::SearchEngineBuilder::<u32>::with_documents(::bm25::Language::English, documents).build();
    Box::new(move |query| engine.search(query, depth).iter().map(|hit| hit.document.id as usize).collect())
}

/// Five boosted fields, English stems and stop words, in memory.
pub(crate) fn tantivy(view: &View, depth: usize) -> Rank {
    use ::tantivy::collector::TopDocs;
    use ::tantivy::query::{BooleanQuery, BoostQuery, Occur, TermQuery};
    use ::tantivy::schema::{IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions, Value as _};
    use ::tantivy::tokenizer::{
        Language, LowerCaser, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer,
    };
    const FIELDS: [(&str, f32); 5] = [
        ("server", 1.0),
        ("name", 2.0),
        ("description", 1.0),
        ("parameters", 0.75),
        ("parameter_descriptions", 0.4),
    ];
    let mut schema = Schema::builder();
    let indexing =
        TextFieldIndexing::default().set_tokenizer("words").set_index_option(IndexRecordOption::WithFreqs);
    let fields: Vec<_> = FIELDS
        .iter()
        .map(|(name, _)| {
            schema.add_text_field(name, TextOptions::default().set_indexing_options(indexing.clone()))
        })
        .collect();
    let place = schema.add_u64_field("place", STORED);
    let index = ::tantivy::Index::create_in_ram(schema.build());
    let analyzer = || {
        TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(LowerCaser)
            .filter(StopWordFilter::new(Language::English).unwrap())
            .filter(Stemmer::new(Language::English))
            .build()
    };
    index.tokenizers().register("words", analyzer());
    let mut writer = index.writer_with_num_threads(1, 50_000_000).unwrap();
    for (position, tool) in view.tools().iter().enumerate() {
        let mut document = ::tantivy::TantivyDocument::default();
        document.add_u64(place, position as u64);
        document.add_text(fields[0], tool.id().server().replace(['_', '-', '.'], " "));
        document.add_text(fields[1], tool.id().tool().replace(['_', '-', '.'], " "));
        document.add_text(fields[2], tool.description());
        for (name, property) in tool.input_schema()["properties"].as_object().into_iter().flatten() {
            document.add_text(fields[3], name.replace(['_', '-'], " "));
            document.add_text(fields[4], property["description"].as_str().unwrap_or_default());
        }
        writer.add_document(document).unwrap();
    }
    writer.commit().unwrap();
    let searcher = index.reader().unwrap().searcher();
    Box::new(move |query| {
        let mut words = Vec::new();
        let mut analyzer = analyzer();
        analyzer.token_stream(query).process(&mut |token| {
            if !words.contains(&token.text) {
                words.push(token.text.clone());
            }
        });
        let clauses = words.iter().flat_map(|word| {
            fields.iter().zip(FIELDS).map(move |(&field, (_, boost))| {
                let term = TermQuery::new(
                    ::tantivy::Term::from_field_text(field, word),
                    IndexRecordOption::WithFreqs,
                );
                let clause: Box<dyn ::tantivy::query::Query> =
                    Box::new(BoostQuery::new(Box::new(term), boost));
                (Occur::Should, clause)
            })
        });
        let query = BooleanQuery::new(clauses.collect());
        let hits = searcher.search(&query, &TopDocs::with_limit(depth).order_by_score()).unwrap();
        hits.iter()
            .map(|(_, address)| {
                let document: ::tantivy::TantivyDocument = searcher.doc(*address).unwrap();
                document.get_first(place).and_then(|value| value.as_u64()).unwrap() as usize
            })
            .collect()
    })
}
