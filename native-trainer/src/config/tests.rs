//! Tests of whole configs: from text to a checked [`Config`].

use std::{env, fs};

use akin_base::problem::parts;
use akin_core::geometry::Geometry;
use akin_core::image::{Normalisation, Preprocessing};
use akin_core::models::BackboneConfig;
use akin_core::poincare::Curvature;
use akin_core::random::stream;
use akin_core::similarity::Similarity;
use burn::tensor::{Device, Tensor};

use super::schema::{Schema, Shape};
use super::*;

const SHORT: &str = r#"
[run]
epochs = 2

[data]
kind = "csv"
path = "labels.csv"
levels = ["order", "species"]

[model]
backbone = { kind = "small_resnet" }
head = { dimension = 8 }

[model.preprocessing]
resize = 32
crop = 32
filter = "bilinear"
channels = "rgb"
scale = 0.00392156862745098
mean = [0.5, 0.5, 0.5]
deviation = [0.5, 0.5, 0.5]

[loss]
kind = "norm_softmax"
"#;

fn load(text: &str, sets: &[&str]) -> Result<Config> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tiny.toml");
    fs::write(&file, text).unwrap();
    Config::load(&file, &sets.iter().map(|&set| set.to_owned()).collect::<Vec<_>>())
}

fn refusal(text: &str, sets: &[&str]) -> (String, String) {
    let (message, hint) = parts(&load(text, sets).unwrap_err());
    (message, hint.expect("every error says what to do"))
}

fn refusal_of(set: &str) -> (String, String) {
    refusal(SHORT, &[set])
}

/// The names of the kinds of a type.
fn kinds_of<T: JsonSchema>() -> Vec<String> {
    let schema = Schema::of::<T>();
    match schema.shape(schema.root()) {
        Shape::Names(names, _) => names.iter().map(|(name, _)| (*name).to_owned()).collect(),
        Shape::Kinds(kinds) => kinds.iter().map(|(kind, _)| (*kind).to_owned()).collect(),
        _ => panic!("the type has no kinds"),
    }
}

#[test]
fn published_results_name_levels_and_data_sets_that_there_are() {
    let results = |more: &str| {
        let text = format!(
            "[published]\npaper = 'ramzi2021'\nresults = [{{ place = 'Table 9', row = 'a', {more} }}]\n"
        );
        [SHORT, &text].concat()
    };
    for on in ["{ kind = 'roxford5k', difficulty = 'hard' }", "{ kind = 'sop' }"] {
        load(&results(&format!("on = {on}, scores = {{ ap = 20.7 }}")), &[]).unwrap();
    }
    for (on, fault) in [
        ("{ kind = 'roxford5k' }", "the data set `roxford5k` without a difficulty"),
        ("{ kind = 'sop', difficulty = 'hard' }", "the data set `sop` with a difficulty, and it has none"),
    ] {
        let (message, hint) = refusal(&results(&format!("on = {on}, scores = {{}}")), &[]);
        assert!(message.contains(fault) && hint.contains("revisited"), "{message} {hint}");
    }
    let (message, hint) = refusal(&results("level = 'species', on = { kind = 'sop' }, scores = {}"), &[]);
    assert!(message.contains("the data set `sop` and a level"), "{message}");
    assert!(hint.contains("remove `level`"), "{hint}");
    let (message, _) = refusal(&results("level = 'genus', scores = {}"), &[]);
    assert!(message.contains("names the level `genus`, which the data do not have"), "{message}");
}

#[test]
fn every_backbone_gives_the_features_that_it_promises() {
    let device = Device::flex();
    // That of an ONNX file is only known when the file is.
    for kind in kinds_of::<BackboneConfig>().into_iter().filter(|kind| kind != "onnx") {
        let config = BackboneConfig::named(&kind).unwrap();
        let entry = config.entry();
        assert!(entry.side >= entry.smallest_side, "{kind}");
        // Those of large ones take minutes; core compares small networks of the same form with the published ones.
        if config.absent(&device).unwrap().parameters() > 30_000_000 {
            continue;
        }
        let backbone = config.init(&mut stream(0, "initialisation", &[]), &device).unwrap();
        let side = entry.smallest_side as usize;
        let outputs = backbone.outputs(Tensor::ones([2, 3, side, side], &device)).unwrap();
        let features = config.pooling().pool(outputs);
        assert_eq!(features.dims(), [2, config.features()], "{kind}");
        let values = features.into_data().try_to_vec::<f32>().unwrap();
        assert!(values.iter().all(|value| value.is_finite()), "{kind}");
    }
}

#[test]
fn a_short_config_gets_every_default_and_reads_back_as_itself() {
    let config = load(SHORT, &[]).unwrap();
    assert_eq!(config.run.name, "tiny");
    assert!(config.run.out.ends_with("runs/tiny"));
    assert!(config.data.path().is_absolute() && config.data.path().ends_with("labels.csv"));
    assert_eq!(config.sampler, SamplerConfig::default());
    let elsewhere = tempfile::tempdir().unwrap();
    let saved = elsewhere.path().join("config.toml");
    fs::write(&saved, config.to_toml()).unwrap();
    assert_eq!(Config::load(&saved, &[]).unwrap(), config);
}

#[test]
fn a_message_does_not_quote_a_long_line() {
    let (message, _) = refusal(&format!("{SHORT}[eval]\nmetrics = [{}", "1, ".repeat(1 << 20)), &[]);
    assert!(message.contains("line 26") && message.len() < 400, "{} bytes", message.len());
}

#[test]
fn set_changes_any_key_and_bare_words_are_texts() {
    let sets = [
        "run.seed=7",
        "optimizer.rule.kind=sgd",
        "optimizer.rule.momentum=0.9",
        "augment.crop_scale=[0.2, 1]",
    ];
    let config = load(SHORT, &sets).unwrap();
    assert_eq!(config.run.seed, 7);
    assert_eq!(config.optimizer.rule, Rule::Sgd(Sgd { momentum: 0.9, nesterov: false }));
    assert_eq!(config.augment.unwrap().crop_scale, [0.2, 1.0]);
    assert_eq!(load(SHORT, &["loss={kind='fast_ap'}"]).unwrap().loss.name(), "fast_ap");
}

#[test]
fn another_kind_starts_without_the_keys_of_the_old_one() {
    let cold = SHORT.replace("kind = \"norm_softmax\"", "kind = \"norm_softmax\"\ntemperature = 0.01");
    let loss = |sets: &[&str]| load(&cold, sets).unwrap().loss;
    assert_eq!(loss(&["loss.kind=fast_ap"]), LossConfig::named("fast_ap").unwrap());
    assert_eq!(loss(&["loss.bins=4", "loss.kind=fast_ap"]), loss(&["loss={kind='fast_ap',bins=4}"]));
    assert_eq!(loss(&["loss.kind=norm_softmax"]), loss(&[]));
    let levels = load(&cold, &["loss.loss.kind=fast_ap", "loss.kind=levels"]).unwrap().loss;
    assert_eq!(levels, load(&cold, &["loss={kind='levels',loss={kind='fast_ap'}}"]).unwrap().loss);
    let happier = loss(&["loss.kind=happier", "loss={kind='fast_ap'}"]);
    assert_eq!(happier, LossConfig::named("happier").unwrap());
    let head = ["model.head.geometry.kind=binary", "model.head={dimension=4}"];
    let head = load(&cold, &head).unwrap().model.head.unwrap();
    assert_eq!((head.dimension, head.geometry), (4, Geometry::Binary));
    // A table without a kind is of the default kind.
    let with_k = format!("{cold}\n[sampler]\nimages_per_class = 2\n");
    let sampler = |set: &str| load(&with_k, &[set]).unwrap().sampler;
    assert_eq!(sampler("sampler.kind=random"), SamplerConfig::Random { batch_size: None });
    let classes = SamplerConfig::Classes { classes_per_batch: None, images_per_class: 2, level: None };
    assert_eq!(sampler("sampler.kind=classes"), classes);
    // What every rule needs stands beside it.
    let optimizer = load(&cold, &["optimizer.lr_head=0.5", "optimizer.rule.kind=adamw"]).unwrap().optimizer;
    assert_eq!((optimizer.rule, optimizer.lr_head), (Rule::AdamW(Adam::default()), 0.5));
}

#[test]
fn one_benchmark_is_not_chosen_where_all_are_evaluated() {
    let dyml = |set: &str| load(SHORT, &["data={kind='dyml_animal',path='x'}", "split.protocol=dyml", set]);
    dyml("data.benchmark=fine").unwrap();
    let (message, _) = parts(&dyml("data.benchmark=coarse").unwrap_err());
    assert!(message.contains("which evaluates all benchmarks"), "{message}");
}

#[test]
fn every_term_of_a_sum_needs_a_rate_if_one_has_it() {
    let terms =
        "loss={kind='sum',terms=[{weight=1,loss={kind='fast_ap'}},{weight=1,loss={kind='proxy_anchor'}}]}";
    let rates = |rates: &str| [terms.to_owned(), format!("optimizer.lr_terms={rates}")];
    let config = |sets: [String; 2]| load(SHORT, &[&sets[0], &sets[1]]);
    assert_eq!(config(rates("[0.0, 1.0]")).unwrap().optimizer.lr_terms, [0.0, 1.0]);
    for (wrong, part) in [
        ("[1.0]", "lr_terms has 1 rates, but loss.terms has 2 terms"),
        ("[1.0, -1.0]", "optimizer.lr_terms is -1"),
    ] {
        let (message, _) = parts(&config(rates(wrong)).unwrap_err());
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_batch_passes_in_parts_where_no_image_changes_another() {
    let parts_of = |part: &str, set: &str| load(SHORT, &[part, set]);
    for part in ["optimizer.chunk=4", "run.workers=3"] {
        let (message, hint) = parts(&parts_of(part, "run.seed=1").unwrap_err());
        assert!(message.contains("by the statistics of the batch"), "{message}");
        assert!(hint.unwrap().contains("model.batch_norm = \"frozen\""));
        for set in [
            "model.batch_norm=frozen",
            "model.batch_norm=fixed_statistics",
            "model.freeze_backbone=true",
            "model.backbone={kind='squeezenet'}",
        ] {
            parts_of(part, set).unwrap_or_else(|error| panic!("{part}, {set}: {error:#}"));
        }
    }
}

#[test]
fn a_whole_set_passes_in_chunks_and_has_no_earlier_batches() {
    let whole = |sets: &[&str]| load(SHORT, &[&["sampler.kind=whole_set"], sets].concat());
    assert_eq!(whole(&["model.batch_norm=frozen"]).unwrap().chunk(), Some(64));
    assert_eq!(whole(&["model.batch_norm=frozen", "optimizer.chunk=8"]).unwrap().chunk(), Some(8));
    assert_eq!(whole(&["model.freeze_backbone=true"]).unwrap().chunk(), Some(64));
    assert_eq!(load(SHORT, &[]).unwrap().chunk(), None);
    let live = parts(&whole(&[]).unwrap_err());
    assert!(live.0.contains("sampler.kind is `whole_set`, whose images pass in chunks"), "{}", live.0);
    assert!(live.1.unwrap().ends_with("or use another sampler.kind"));

    let memory = "{kind='cross_batch_memory',loss={kind='contrastive'}}";
    let sum =
        format!("{{kind='sum',terms=[{{weight=1,loss={{kind='fast_ap'}}}},{{weight=1,loss={memory}}}]}}");
    let levels = format!("{{kind='levels',loss={memory}}}");
    for loss in [memory, &sum, &levels].map(|loss| format!("loss={loss}")) {
        load(SHORT, &[&loss]).unwrap();
        let (message, hint) = parts(&whole(&["model.batch_norm=frozen", &loss]).unwrap_err());
        assert!(
            message.contains("the loss `cross_batch_memory` adds images of earlier batches"),
            "{message}"
        );
        assert!(hint.unwrap().starts_with("name the loss inside"));
    }
}

#[test]
fn half_precision_is_for_backbones_that_learn() {
    assert_eq!(load(SHORT, &["run.precision=half"]).unwrap().run.precision, Precision::Half);
    let frozen = load(SHORT, &["run.precision=half", "model.freeze_backbone=true"]).unwrap();
    assert_eq!(frozen.precision(), Precision::Single);
}

#[test]
fn similarity_follows_from_the_geometry_of_the_head_unless_it_is_set() {
    let similarity = |sets: &[&str]| load(SHORT, sets).unwrap().eval.similarity;
    assert_eq!(similarity(&[]), Similarity::Cosine);
    let binary = "model.head.geometry={kind='binary'}";
    assert_eq!(similarity(&[binary]), Similarity::Hamming);
    assert_eq!(similarity(&[binary, "eval.similarity='dot'"]), Similarity::Dot);
    let ball = Similarity::Poincare { curvature: Curvature::try_from(0.3).unwrap() };
    assert_eq!(similarity(&["model.head.geometry={kind='poincare',curvature=0.3}"]), ball);
}

#[test]
fn steps_from_the_command_line_replace_epochs_from_the_file() {
    let run = load(SHORT, &["run.steps=30"]).unwrap().run;
    assert_eq!((run.steps, run.epochs, run.total_steps(5)), (Some(30), None, 30));
    assert_eq!(load(SHORT, &[]).unwrap().run.total_steps(5), 10);
}

#[test]
fn a_setting_from_the_command_line_replaces_its_alternative_in_the_file() {
    let file = format!(
        "{SHORT}\n[schedule]\ncurve = {{ kind = \"steps\", milestones = [3] }}\nlr_warmup_epochs = 1\n\n[augment]\nresize = 64\n"
    );
    let sets = ["schedule.curve.every_epochs=2", "schedule.lr_warmup_steps=5", "augment.squeeze=40"];
    let Config { schedule, augment, .. } = load(&file, &sets).unwrap();
    let curve = Curve::Steps { milestones: Vec::new(), every_epochs: Some(2), gamma: 0.1 };
    assert_eq!(schedule.curve, curve);
    assert_eq!((schedule.lr_warmup_epochs, schedule.lr_warmup_steps), (None, Some(5)));
    let augment = augment.unwrap();
    assert_eq!((augment.resize, augment.squeeze), (None, Some(40)));
}

#[test]
fn a_path_in_a_set_starts_at_the_current_directory() {
    let config = load(SHORT, &["data.path=other.csv"]).unwrap();
    assert_eq!(config.data.path(), env::current_dir().unwrap().join("other.csv"));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    let (message, hint) = refusal(&SHORT.replace("epochs", "epocs"), &[]);
    assert!(message.contains("tiny.toml, line 3: unknown key `epocs` in [run]"), "{message}");
    assert!(
        hint.starts_with(
            "did you mean `epochs`? the keys are best_by, checkpoint_every_epochs, checkpoint_every_minutes, "
        ),
        "{hint}"
    );

    let (message, hint) = refusal_of("optimiser.lr_head=1");
    assert!(message.ends_with("unknown section `optimiser`"), "{message}");
    assert!(hint.starts_with("did you mean `optimizer`?"), "{hint}");
}

/// The kinds that have a key are named, and the table in which it stands.
#[test]
fn a_key_of_another_kind_or_place_is_refused_with_its_place() {
    for (set, part, advice) in [
        (
            "optimizer.rule.nesterov=true",
            "unknown key `nesterov` in [optimizer.rule]: it belongs to `sgd`, not to `adam`",
            "remove it, or choose another `optimizer.rule.kind`",
        ),
        (
            "optimizer.rule={kind='sgd',epsilon=1}",
            "unknown key `epsilon` in [optimizer.rule]: it belongs to `adam`, `adamw`, `rmsprop`, not to `sgd`",
            "remove it",
        ),
        (
            "schedule.curve={kind='constant',gamma=0.5}",
            "unknown key `gamma` in [schedule.curve]: it belongs to `steps`, `plateau`, not to `constant`",
            "remove it",
        ),
        (
            "sampler.batch_size=8",
            "unknown key `batch_size` in [sampler]: it belongs to `random`, not to `classes`",
            "choose another `sampler.kind`",
        ),
        (
            "optimizer.beta_2=0.5",
            "unknown key `beta_2` in [optimizer]",
            "did you mean `optimizer.rule.beta_2`?",
        ),
        ("optimizer.kind=sgd", "unknown key `kind` in [optimizer]", "did you mean `optimizer.rule.kind`?"),
        (
            "data.hierarchy=birds.py",
            "unknown key `hierarchy` in [data]: it belongs to `cub200`, `cars196`, not to `csv`",
            "choose another `data.kind`",
        ),
        (
            "data.test_fraction=0.5",
            "unknown key `test_fraction` in [data]",
            "did you mean `split.test_fraction`?",
        ),
        ("data.test=val", "unknown key `test` in [data]", "did you mean `data.splits.test`?"),
        ("run.lr_head=1", "unknown key `lr_head` in [run]", "did you mean `optimizer.lr_head`?"),
        (
            "optimizer.rule=sgd",
            "`optimizer.rule` is \"sgd\", not a table with a `kind`",
            "write { kind = \"sgd\" }",
        ),
    ] {
        let (message, hint) = refusal_of(set);
        assert!(message.ends_with(part), "{set}: {message}");
        assert!(hint.contains(advice), "{set}: {hint}");
    }
}

#[test]
fn an_unknown_value_is_refused_with_the_nearest_known_one() {
    let (message, hint) = refusal_of("optimizer.rule.kind=adamm");
    assert!(message.ends_with("unknown kind `adamm` in `optimizer.rule.kind`"), "{message}");
    assert_eq!(hint, "did you mean `adam`? it can be adam, adamw, sgd, rmsprop");
}

#[test]
fn all_missing_keys_are_named_at_once() {
    let data_kinds = kinds_of::<DataConfig>().join(", ");
    assert!(data_kinds.starts_with("folder, csv"), "{data_kinds}");
    let (message, _) = refusal(&SHORT.replace("kind = \"csv\"", ""), &[]);
    assert!(message.ends_with(&format!("the setting `data.kind` ({data_kinds}) is missing")), "{message}");
    let backbones = kinds_of::<BackboneConfig>().join(", ");
    assert!(backbones.starts_with("small_resnet, squeezenet"), "{backbones}");
    let (message, hint) = refusal("[model]\nhead = {}", &[]);
    assert!(
        message.ends_with(&format!(
            "these settings are missing: `model.head.dimension`, `model.backbone.kind`, \
             `data.kind` ({data_kinds}), `data.path`, `data.levels`, `loss.kind`, `run.steps` or `run.epochs`"
        )),
        "{message}"
    );
    assert!(hint.contains("`--set`"), "{hint}");
}

#[test]
fn a_wrong_value_is_named_with_its_key_and_line() {
    let (message, hint) = refusal_of("run.seed=-1");
    assert_eq!(message, "`--set run.seed=-1`: `run.seed` is -1, not a whole number of at least 0");
    assert_eq!(hint, "give `run.seed` a whole number of at least 0");
    assert!(
        refusal_of("augment.crop_scale=0.4")
            .0
            .contains("`augment.crop_scale` is 0.4, not a list of 2 values")
    );
    let (message, _) = refusal(&SHORT.replace("dimension = 8", "dimension = 8.5"), &[]);
    assert!(message.contains("tiny.toml, line 12: `model.head.dimension` is 8.5, not"), "{message}");
}

#[test]
fn a_fault_inside_a_table_with_a_kind_is_named_with_its_key() {
    let happier = "loss={kind='happier_f',surrogate={upper_step={temperature='hot'}}}";
    let terms = "terms=[{weight=1,loss={kind='fast_ap'}},{weight='one',loss={kind='fast_ap'}}]";
    let term = &format!("loss={{kind='sum',{terms}}}");
    for (set, part) in [
        ("loss.temperature=hot", "`loss.temperature` is \"hot\", not a number"),
        (happier, "`loss.surrogate.upper_step.temperature` is \"hot\", not a number"),
        (term, "`loss.terms.weight` is \"one\", not a number"),
        ("loss={kind='contrastive',miner='all'}", "`loss.miner` is \"all\", not a table with a `kind`"),
        ("loss={kind='contrastive',miner={kind='al'}}", "unknown miner `al` in `loss.miner.kind`"),
        ("loss={kind='levels',loss={kind='fast_app'}}", "unknown loss `fast_app` in `loss.loss.kind`"),
        ("loss={kind='levels',loss={kind='fast_ap',bin=3}}", "unknown key `bin` in [loss.loss]"),
        ("loss={kind='sum_triplet',weight=[1]}", "unknown key `weight` in [loss]"),
        ("loss={kind=3}", "`loss.kind` is 3, not a text in quotes"),
    ] {
        let (message, _) = refusal_of(set);
        assert!(message.contains(part), "{set}: {message}");
    }
    let (message, hint) = refusal_of("loss={kind='hapier'}");
    assert!(message.ends_with("unknown loss `hapier` in `loss.kind`"), "{message}");
    assert!(hint.starts_with("did you mean `happier`?"), "{hint}");
}

#[test]
fn preprocessing_is_a_name_or_follows_from_the_backbone() {
    let preprocessing = |sets: &[&str]| load(SHORT, sets).unwrap().model.preprocessing;
    let own = Preprocessing::new(Normalisation::Inception, 32).unwrap();
    assert_eq!(preprocessing(&[]), own);
    assert_eq!(preprocessing(&["model.preprocessing={name='inception',crop=32}"]), own);
    let caffe = "model.preprocessing={resize=128,crop=128,filter='bilinear',channels='bgr',scale=1.0,\
                 mean=[104.0,117.0,123.0],deviation=[1.0,1.0,1.0]}";
    assert_eq!(preprocessing(&[caffe]), preprocessing(&["model.preprocessing={name='caffe',crop=128}"]));
    let squeezenet = ["model.backbone={kind='squeezenet'}", "model.preprocessing={}"];
    assert_eq!(preprocessing(&squeezenet), Preprocessing::new(Normalisation::Caffe, 224).unwrap());
    assert_eq!(preprocessing(&["model.preprocessing=imagenet"]).side(), 96);

    let (message, hint) = refusal_of("model.preprocessing=imagenett");
    assert!(message.ends_with("unknown value `imagenett` in `model.preprocessing`"), "{message}");
    assert!(hint.starts_with("did you mean `imagenet`?"), "{hint}");
    for gem in ["gem", "{kind='gem',p=3}"] {
        let (_, hint) = refusal_of(&format!("model.pooling={gem}"));
        assert!(hint.ends_with("average_max, class_token, { gem = { exponent = 3.0 } }"), "{hint}");
    }
    assert!(refusal_of("model.preprocessing={name='imagenet',scale=1}").0.contains("a name and also scale"));
}

#[test]
fn values_out_of_their_range_are_refused() {
    for (set, part) in [
        ("run.epochs=0", "run.epochs is 0"),
        ("run.checkpoint_every_epochs=0", "checkpoint_every_epochs is 0"),
        ("data.levels=[]", "data.levels is empty"),
        ("data.levels=[\"a\", \"a\"]", "has \"a\" twice"),
        ("data.splits.test=train", "called \"train\""),
        ("split.test_fraction=1", "split.test_fraction is 1"),
        ("split={seed=1}", "split.seed is set, but the splits are given by the data"),
        ("augment.crop_scale=[0, 1]", "crop_scale is [0, 1]"),
        ("augment.crop_ratio=[2, 1]", "crop_ratio is [2, 1]"),
        ("augment={resize=0}", "augment.resize is 0"),
        ("augment={squeeze=4097}", "augment.squeeze is 4097"),
        ("augment={resize=64,squeeze=64}", "both augment.resize and augment.squeeze"),
        ("augment={resize=64,crop_ratio=[0.1, 1]}", "images are resized before they are cropped"),
        ("augment={crop='side'}", "augment.crop_side is not set"),
        ("augment={crop_side=[40, 256]}", "but augment.crop is not `side`"),
        ("augment={crop='side',crop_side=[40, 0]}", "augment.crop_side is [40, 0]"),
        ("augment={crop='position'}", "32×32 pixels, but images are not resized"),
        ("augment={crop='position',squeeze=31}", "but images are resized to 31 pixels"),
        ("sampler.images_per_class=0", "sampler.images_per_class is 0"),
        ("sampler.classes_per_batch=0", "sampler.classes_per_batch is 0"),
        ("sampler={kind='random',batch_size=0}", "sampler.batch_size is 0"),
        ("sampler={kind='random',batch_size=65537}", "sampler.batch_size is 65537"),
        ("sampler={kind='whole_set',batch_size=4}", "batch_size"),
        ("sampler={kind='class_pairs',batches_per_pair=0}", "sampler.batches_per_pair is 0"),
        ("sampler={kind='class_pairs',batches_per_pair=65537}", "sampler.batches_per_pair is 65537"),
        ("sampler={kind='class_pairs',classes_per_batch=7}", "classes_per_batch is 7, which is odd"),
        ("sampler={kind='class_pairs',level='species'}", "no level is above the one that it pairs"),
        ("sampler.level=specie", "sampler.level is \"specie\", but the levels are order, species"),
        ("optimizer.lr_head=-1", "optimizer.lr_head is -1"),
        ("optimizer.lr_head=nan", "optimizer.lr_head is NaN"),
        ("optimizer.rule.epsilon=0", "optimizer.rule.epsilon is 0"),
        ("optimizer.rule.beta_1=1", "optimizer.rule.beta_1 is 1"),
        ("optimizer.rule={kind='rmsprop',alpha=1}", "optimizer.rule.alpha is 1"),
        ("optimizer.clip_value=0", "optimizer.clip_value is 0"),
        ("optimizer.ema_decay=1", "optimizer.ema_decay is 1"),
        ("optimizer.ema_decay=0", "optimizer.ema_decay is 0"),
        ("optimizer.layer_decay=0", "optimizer.layer_decay is 0"),
        ("optimizer.layer_decay=1.1", "optimizer.layer_decay is 1.1"),
        ("optimizer.layer_decay=nan", "optimizer.layer_decay is NaN"),
        ("model.lora={rank=8}", "is no vision transformer"),
        ("model.lora={rank=0}", "the rank of the adapters is 0"),
        ("model.lora={rank=8,alpha=0}", "the alpha of the adapters is 0"),
        ("model.lora={rank=8,layers=[]}", "the adapters are for no layer"),
        ("model.drop_path=1", "model.drop_path is 1"),
        ("model.drop_path=-0.1", "model.drop_path is -0.1"),
        ("run.workers=0", "run.workers is 0"),
        ("run.workers=-1", "a whole number of at least 1"),
        ("run.workers=1025", "run.workers is 1025; there are at most 1024"),
        ("run.workers=9223372036854775807", "run.workers is 9223372036854775807; there are at most 1024"),
        ("run.workers=2", "run.workers is 2, but the batch normalisation of small_resnet is live"),
        ("optimizer.chunk=0", "optimizer.chunk is 0"),
        ("optimizer.chunk=4", "optimizer.chunk is set, but the batch normalisation of small_resnet is live"),
        ("schedule.curve.final_factor=2", "schedule.curve.final_factor is 2"),
        ("schedule.curve={kind='plateau',gamma=0}", "schedule.curve.gamma is 0"),
        ("schedule.curve={kind='steps',gamma=1}", "schedule.curve.gamma is 1"),
        ("schedule.curve={kind='steps',every_epochs=0}", "schedule.curve.every_epochs is 0"),
        ("schedule.curve={kind='steps',milestones=[3, 3]}", "schedule.curve.milestones is [3, 3]"),
        ("schedule.curve={kind='steps',milestones=[0, 3]}", "schedule.curve.milestones is [0, 3]"),
        ("schedule.curve.kind=steps", "neither of schedule.curve.milestones and schedule.curve.every_epochs"),
        ("schedule.curve={kind='steps',milestones=[3],every_epochs=3}", "both of schedule.curve.milestones"),
        ("schedule={lr_warmup_steps=3,lr_warmup_epochs=1}", "both schedule.lr_warmup_steps and"),
        ("schedule.curve.kind=plateau", "schedule.curve is `plateau`, but there is no evaluation"),
        ("run.patience=0", "run.patience is 0"),
        ("eval.block=0", "`block`"),
        ("eval.metrics=[]", "`metrics` is empty"),
        ("eval.metrics=[\"recal@1\"]", "unknown metric `recal@1`"),
        ("eval.relevance={ kind = \"weighted_ap\", weights = [1] }", "the relevance has 1 weights"),
    ] {
        let (message, hint) = refusal_of(set);
        assert!(
            message.starts_with(&format!("`--set {set}`: ")) && message.contains(part),
            "{set}: {message}"
        );
        assert!(!hint.is_empty());
    }
    assert!(refusal(&SHORT.replace("epochs = 2", "epochs = 2\nsteps = 2"), &[]).0.contains("both"));
    assert!(refusal(&SHORT.replace("epochs = 2", ""), &[]).0.contains("neither"));
}

#[test]
fn a_mistake_is_blamed_on_the_set_that_makes_it_or_on_the_file() {
    let fine = "optimizer.lr_head=0.1";
    for (set, part) in [
        ("optimizer.lr_haed=0.1", "unknown key `lr_haed`"),
        ("optimizer={lr_haed=0.1}", "unknown key `lr_haed`"),
        ("optimizer.lr_head=x", "`optimizer.lr_head` is \"x\", not a number"),
        ("run.best_by=ndcg@7", "run.best_by is ndcg@7"),
        ("data.splits.test=train", "called \"train\""),
        ("run.name=a/b", "cannot be the name of a folder"),
    ] {
        let (message, _) = refusal(SHORT, &["run.evaluate_every_epochs=1", fine, set]);
        assert!(message.starts_with(&format!("`--set {set}`: ")) && message.contains(part), "{message}");
    }
    let wrong_file = SHORT.replace("epochs = 2", "epochs = 2\nsede = 1");
    let (message, _) = refusal(&wrong_file, &[fine]);
    assert!(message.contains("tiny.toml, line 4: unknown key `sede`"), "{message}");
    let wrong_file = SHORT.replace("epochs = 2", "epochs = 0");
    let (message, _) = refusal(&wrong_file, &[fine]);
    assert!(message.contains("tiny.toml: run.epochs is 0") && !message.contains("--set"), "{message}");
}

#[test]
fn a_set_without_a_key_and_a_value_is_refused() {
    assert!(refusal_of("run.seed").0.contains("has no `=`"));
    assert!(refusal_of("seed=1").0.contains("does not name a section"));
    assert!(refusal_of("loss=happier").0.contains("does not name a section"));
    assert!(refusal_of("run.epochs.deep=1").0.contains("`epochs` is not a table"));
}

#[test]
fn a_file_that_is_missing_or_not_toml_is_refused() {
    let (message, hint) = parts(&Config::load(Path::new("nowhere.toml"), &[]).unwrap_err());
    assert!(message.contains("the config nowhere.toml cannot be read"), "{message}");
    assert!(hint.is_some());
    let (message, _) = refusal("[run\nsteps = 1", &[]);
    assert!(message.contains("not valid TOML") && message.contains("line 1"), "{message}");
}

#[test]
fn an_unset_environment_variable_is_named() {
    let (message, hint) = refusal_of("data.path=${AKIN_SURELY_UNSET}/labels.csv");
    assert!(message.contains("`data.path`") && message.contains("AKIN_SURELY_UNSET"), "{message}");
    assert!(hint.contains("export AKIN_SURELY_UNSET="), "{hint}");
    assert!(refusal_of("data.path=${OPEN").0.contains("no `}`"));
    let home = load(SHORT, &["data.path=${CARGO_MANIFEST_DIR}/x.csv"]).unwrap();
    assert_eq!(home.data.path(), Path::new(env!("CARGO_MANIFEST_DIR")).join("x.csv"));
}

#[test]
fn a_run_stays_in_runs_unless_its_directory_is_set() {
    for name in ["../../zz", "a/b", "..", "/tmp/zz", "a/"] {
        let error = load(SHORT, &[&format!("run.name={name}")]).unwrap_err();
        assert!(format!("{error:#}").contains("cannot be the name of a folder"), "{name}: {error:#}");
        load(SHORT, &[&format!("run.name={name}"), "run.out=out"]).unwrap();
    }
}

#[test]
fn a_batch_is_bounded() {
    for set in ["sampler.images_per_class=9000000000000000000", "sampler.images_per_class=100000"] {
        let error = load(SHORT, &[set]).unwrap_err();
        assert!(format!("{error:#}").contains("is too large"), "{error:#}");
    }
}
