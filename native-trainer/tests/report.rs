//! `akin report`: one file that needs no other, and the figures in it.

mod workplace;

use std::fs;

use workplace::Workplace;

/// Trainings on classes whose names are markup.
fn runs(runs: &[(&str, &str)]) -> Workplace {
    let at = Workplace::empty();
    let mut labels = "path,group,class,split\n".to_owned();
    fs::create_dir(at.path("images")).unwrap();
    for class in 0..12_u8 {
        for image in 0..3_u8 {
            let name = format!("images/{class}-{image}.png");
            image::RgbImage::from_pixel(40, 32, image::Rgb([class * 20, image * 60, 99]))
                .save(at.path(&name))
                .unwrap();
            let split = if class < 6 { "train" } else { "test" };
            let group = ["<u>1</u>", "B & \"b\""][usize::from(class % 2)];
            labels += &format!("{name},\"{}\",<i>{class}</i>,{split}\n", group.replace('"', "\"\""));
        }
    }
    at.write("labels.csv", labels);
    at.write("c.toml", CONFIG);
    for (name, loss) in runs {
        let loss = format!("loss.kind={loss}");
        at.akin(&["train", "c.toml", "--out", name, "--set", &loss, "--set", &format!("run.name={name}")])
            .expect_code(0);
    }
    at
}

const CONFIG: &str = "
run = { epochs = 4, evaluate_every_epochs = 1, device = 'cpu' }
data = { kind = 'csv', path = 'labels.csv', levels = ['group', 'class'] }
model = { backbone = { kind = 'small_resnet', width = 2 }, head = { dimension = 4 }, preprocessing = { name = 'imagenet', crop = 32 } }
loss = { kind = 'happier' }
sampler = { classes_per_batch = 4, images_per_class = 2 }
eval = { hyperbolicity = { points = 6, draws = 2 } }
";

#[test]
fn a_report_is_one_file_without_scripts_and_names_are_text() {
    let at = runs(&[("first", "happier"), ("second", "norm_softmax")]);
    let answer = at.akin(&["report", "first", "second", "--bootstrap", "50"]).expect_code(0);
    assert_eq!(answer.stdout, "report.html\n");
    let html = at.read("report.html");
    assert!(
        !html.contains("<script") && !html.contains("<i>") && !html.contains("<u>"),
        "labels are no markup"
    );
    assert!(html.contains("&lt;u&gt;1&lt;/u&gt;") && html.contains("B &amp; &quot;b&quot;"));
    // The name of the format is no address that is asked for.
    let asks = html.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !asks.contains("://") && !asks.contains("src=\"") && !asks.contains("url("),
        "nothing else is loaded"
    );
    for part in [
        "<td>",
        "class=\"interval\"",
        "H-AP during the training",
        "Most severe mistakes",
        "Confusion of group",
        "How far the answers hold",
        "first: relative δ-hyperbolicity ",
        "in 2 draws of 6 items",
    ] {
        assert!(html.contains(part), "no {part:?}");
    }
    for run in ["run-1-best", "run-2-best"] {
        assert_eq!(html.matches(&format!("<figure id=\"{run}\">")).count(), 1, "{run}");
    }
    // 18 pictures each, of which the sheets show some.
    assert!(html.matches("data:image/jpeg").count() > 50);
    assert!(!html.contains("NaN") && !html.contains("inf,"), "every place is a number");

    assert!(!html.contains("different test sets"));
    at.akin(&["report", "first", "--out", "r.pdf"])
        .expect_code(1)
        .expect_stderr("`--out r.pdf` is no HTML file");
    at.akin(&["report", "first"]).expect_code(1).expect_stderr("report.html already exists");
    at.akin(&["report", "first", "first", "--overwrite"]).expect_code(1).expect_stderr("is given twice");
}

/// The levels and metrics of one run are not those of the other.
#[test]
fn runs_on_different_levels_stand_side_by_side() {
    let at = runs(&[("first", "happier")]);
    at.write("other.csv", at.read("labels.csv").replacen("group", "family", 1));
    let other = "data={kind='csv',path='other.csv',levels=['family','class']}";
    let metrics = ["--set", "eval.metrics=['ap']", "--set", "run.best_by='ap'"];
    at.akin(&[&["train", "c.toml", "--out", "other", "--set", other], &metrics[..]].concat()).expect_code(0);
    let report = ["report", "other", "first", "--bootstrap", "0", "--by-class"];
    at.akin(&[&report[..], &["group"]].concat()).expect_code(1).expect_stderr("the levels are family, class");
    at.akin(&[&report[..], &["class"]].concat()).expect_code(0);
    let html = at.read("report.html");
    for part in [
        "<h3>family</h3>",
        "<h3>group</h3>",
        "<h3>class</h3>",
        "hierarchical average precision: ",
        ">H-AP</th>",
        ">macro average</th>",
    ] {
        assert!(html.contains(part), "no {part:?}");
    }
    assert!(html.contains("<figure id=\"run-1-best\">"), "a sheet does not need H-AP among the metrics");
    let (_, figure) = html.split_once("<figure id=\"first-results\">").unwrap();
    let (figure, _) = figure.split_once("</figure>").unwrap();
    assert!(figure.contains("1 level<") && !figure.contains("same "), "{figure}");
}

#[test]
fn a_run_by_the_protocol_of_dyml_has_no_other_results() {
    let at = runs(&[("first", "happier")]);
    let config = at.read("first/config.toml").replace("protocol = \"whole\"", "protocol = \"dyml\"");
    at.write("first/config.toml", config);
    at.akin(&["report", "first"])
        .expect_code(1)
        .expect_stderr("evaluated by the protocol of DyML, which a report does not show")
        .expect_stderr("`akin eval first`");
    at.akin(&["export", "first", "--out", "bundle", "--no-maps"]).expect_code(0);
    let card = at.read("bundle/README.md");
    assert!(card.contains("by the protocol of DyML") && !card.contains("| all levels |"), "{card}");
}

#[test]
fn figures_are_written_as_svg_and_png() {
    let at = runs(&[("first", "happier")]);
    // As a recipe has it.
    let published = "[published]\npaper = 'ramzi2022'\nresults = [{ place = 'Table 1', row = 'HAPPIER', scores = { h_ap = 42.8 } }]\n";
    at.write("first/config.toml", at.read("first/config.toml") + published);
    let report = [
        "report",
        "first",
        "--out",
        "r.html",
        "--svg",
        "svg",
        "--png",
        "png",
        "--bootstrap",
        "0",
        "--queries",
        "2",
    ];
    at.akin(&report).expect_code(0).expect_stderr("figures (");
    let names = |folder: &str, extension: &str| -> Vec<String> {
        let entries = fs::read_dir(at.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert!(names.iter().all(|name| name.ends_with(extension)), "{names:?}");
        names.into_iter().map(|name| name.trim_end_matches(extension).to_owned()).collect()
    };
    let svg = names("svg", ".svg");
    assert_eq!(svg, names("png", ".png"));
    for figure in [
        "affinity",
        "best",
        "certainty",
        "class-means",
        "confusion-1",
        "gallery",
        "loss",
        "mahp",
        "precision-recall",
        "severe",
    ] {
        assert!(svg.iter().any(|name| name == figure), "no {figure} in {svg:?}");
    }
    for figure in svg {
        let picture = image::open(at.path(&format!("png/{figure}.png"))).unwrap().to_rgb8();
        let ink = picture.pixels().filter(|pixel| pixel.0 != [255; 3]).count();
        assert!(ink > 500, "{figure} has {ink} pixels that are not white");
    }
    assert!(at.read("r.html").contains("published in ramzi2022"));
    assert!(!at.read("r.html").contains("class=\"interval\""), "no intervals without resamples");

    at.akin(&report).expect_code(1).expect_stderr("r.html already exists");
    let other = ["report", "first", "--out", "s.html", "--svg", "svg"];
    at.akin(&other).expect_code(1).expect_stderr("svg is not empty");
    assert!(!at.path("s.html").exists());

    // Without queries there are fewer figures. What is not of this report stays, and is told.
    at.write("svg/mine.txt", "");
    let fewer = [&other[..], &["--overwrite", "--bootstrap", "0", "--queries", "0"]].concat();
    at.akin(&fewer).expect_code(0).expect_stderr(
        "files that are not of this report in svg: best.svg, mine.txt, severe.svg, worst.svg\n",
    );
    assert!(at.path("svg/best.svg").exists() && at.path("svg/mine.txt").exists());
}

#[test]
fn a_report_names_a_font_that_cannot_be_used() {
    let at = runs(&[("first", "happier")]);
    let command =
        at.command(&["report", "first", "--png", "png"]).env("AKIN_FONT", "labels.csv").output().unwrap();
    workplace::Answer::of(command)
        .expect_code(1)
        .expect_stderr("labels.csv is no font")
        .expect_stderr("AKIN_FONT");
    assert!(!at.path("png").exists() && !at.path("report.html").exists());
}

#[test]
fn a_report_says_that_runs_are_tested_on_different_images() {
    let at = runs(&[("first", "happier"), ("second", "happier")]);
    let labels = at.read("labels.csv");
    let fewer: Vec<&str> = labels.lines().filter(|line| !line.starts_with("images/11-")).collect();
    at.write("labels.csv", fewer.join("\n"));
    at.akin(&["train", "c.toml", "--out", "other"]).expect_code(0);
    at.write("fewer.csv", fewer.join("\n"));
    let config = at.read("other/config.toml").replace("labels.csv", "fewer.csv");
    at.write("other/config.toml", config);
    at.write("labels.csv", labels);
    at.akin(&["report", "first", "second", "other", "--bootstrap", "0"]).expect_code(0).expect_stderr(
        "The runs have different test sets, so their scores cannot be compared: first, second | c.",
    );
    let html = at.read("report.html");
    assert!(html.contains("have different test sets"));
    for (figure, count) in [("loss", 1), ("mahp", 0), ("mahp-tests-1", 1), ("mahp-tests-2", 1)] {
        assert_eq!(html.matches(&format!("<figure id=\"{figure}\">")).count(), count, "{figure}");
    }
}

#[test]
fn runs_of_one_name_have_the_names_of_their_directories() {
    let at = runs(&[("first", "happier")]);
    at.akin(&["train", "c.toml", "--out", "second", "--set", "run.name=first"]).expect_code(0);
    at.akin(&["report", "first", "second", "--bootstrap", "0"]).expect_code(0);
    let html = at.read("report.html");
    assert!(html.contains("<h2>first</h2>") && html.contains("<h2>second</h2>") && !html.contains("first 2"));
    assert!(html.contains("<h1>first: 2 runs</h1>"));
    at.akin(&["export", "first", "second", "--out", "bundle", "--no-maps"]).expect_code(0);
    let encoders = at.json("bundle/bundle.json")["encoders"].clone();
    let names: Vec<&str> =
        encoders.as_array().unwrap().iter().map(|encoder| encoder["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["first", "second"], "as in the report");
}

#[test]
fn the_class_tree_is_a_picture() {
    let at = runs(&[]);
    let text = at.akin(&["data", "stats", "c.toml", "--svg", "tree.svg"]).expect_code(0);
    assert!(text.stdout.contains("group") && at.read("tree.svg").contains("12 classes"));
    at.akin(&["data", "stats", "c.toml", "--png", "tree.png"]).expect_code(0);
    let picture = image::open(at.path("tree.png")).unwrap();
    assert_eq!(picture.width(), 2400);
    at.akin(&["data", "stats", "c.toml", "--png", "tree.png"]).expect_code(1).expect_stderr("already exists");
}
