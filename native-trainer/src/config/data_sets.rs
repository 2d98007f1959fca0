//! Every data set, one line each: `[data]`, the printed lists and the readers all read it.

/// Gives every data set to another macro.
///
/// Each line is a data set: the variant, its settings, its levels from coarse to fine, its reader, and what is published
/// about it. The variant in snake case is its name. A data set without levels of its own has those that the config names.
/// `config` knows nothing of readers and leaves out the last two; `data` leaves out the settings and the levels.
macro_rules! data_sets {
    ($use:ident) => {
        $use! {
            /// A folder tree in which each level of folders is a level of the taxonomy.
            Folder: FolderConfig, [], folder::list, folder::ENTRY;
            /// A CSV file with one image a line: its path, a column for each level, and its split.
            Csv: TableConfig, [], csv::list, csv::ENTRY;
            /// A Parquet file, or a folder of them, with a row per image: its path or its bytes, a column for each level,
            /// and its split.
            Parquet: TableConfig, [], parquet::list, parquet::ENTRY;
            /// Stanford Online Products.
            Sop: CopyConfig, ["category", "product"], sop::list, sop::ENTRY;
            /// CUB-200-2011: the first 100 bird species for training, the others for evaluation.
            Cub200: HierarchyConfig, ["order", "family", "species"], cub200::list, cub200::ENTRY;
            /// Cars-196: the first 98 car models for training, the others for evaluation.
            Cars196: HierarchyConfig, ["type", "model"], cars196::list, cars196::ENTRY;
            /// In-Shop Clothes Retrieval.
            Inshop: CopyConfig, ["gender", "category", "item"], inshop::list, inshop::ENTRY;
            /// iNaturalist 2018 with species and their groups.
            InatBase: CopyConfig, ["group", "species"], inaturalist::list_base, inaturalist::BASE;
            /// iNaturalist 2018 with the seven ranks of biology.
            InatFull: CopyConfig, ["kingdom", "phylum", "class", "order", "family", "genus", "species"], inaturalist::list_full,
                inaturalist::FULL;
            /// DyML-Vehicle.
            DymlVehicle: BenchmarkConfig, ["coarse", "middle", "fine"], dyml::list_benchmarks, dyml::VEHICLE;
            /// DyML-Animal.
            DymlAnimal: BenchmarkConfig, ["coarse", "middle", "fine"], dyml::list_benchmarks, dyml::ANIMAL;
            /// DyML-Product.
            DymlProduct: CopyConfig, ["coarse", "middle", "fine"], dyml::list_product, dyml::PRODUCT;
            /// CIFAR-100 in its binary version.
            Cifar100: CopyConfig, ["superclass", "class"], cifar100::list, cifar100::ENTRY;
            /// NABirds.
            Nabirds: CopyConfig, ["group", "family", "species", "plumage"], nabirds::list, nabirds::ENTRY;
            /// Omniglot.
            Omniglot: CopyConfig, ["alphabet", "character"], omniglot::list, omniglot::ENTRY;
            /// Grocery Store.
            Grocery: CopyConfig, ["department", "kind", "variety"], grocery::list, grocery::ENTRY;
            /// FGVC-Aircraft.
            Aircraft: CopyConfig, ["manufacturer", "family", "variant"], aircraft::list, aircraft::ENTRY;
            /// H-GLDv2: Google Landmarks v2 with categories.
            HGldv2: CopyConfig, ["supercategory", "category", "landmark"], h_gldv2::list, h_gldv2::ENTRY;
            /// SfM-120k: 3D models of landmarks, with the training and validation images of its training code.
            Sfm120k: CopyConfig, ["landmark"], sfm120k::list_tuples, sfm120k::TUPLES;
            /// SfM-120k: all its images, without splits.
            Sfm120kAll: CopyConfig, ["landmark"], sfm120k::list_all, sfm120k::ALL;
            /// Revisited Oxford, which is only evaluated.
            Roxford5k: RevisitedConfig, ["landmark"], revisited::list, revisited::OXFORD;
            /// Revisited Paris, which is only evaluated.
            Rparis6k: RevisitedConfig, ["landmark"], revisited::list, revisited::PARIS;
        }
    };
}

pub(crate) use data_sets;
