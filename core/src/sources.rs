//! Where losses and metrics come from: a BibTeX entry for each key that the catalogues name.

/// A publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// What the catalogues call it, which is also its BibTeX key.
    pub key: &'static str,
    /// The BibTeX entry.
    pub bibtex: &'static str,
}

/// The publication of a key.
pub fn source(key: &str) -> Option<&'static Source> {
    SOURCES.iter().find(|source| source.key == key)
}

macro_rules! sources {
    ($($key:literal: $kind:literal { $($field:ident = $value:literal),+ $(,)? })+) => {
        /// Every publication, by key.
        pub const SOURCES: &[Source] = &[$(Source {
            key: $key,
            bibtex: concat!("@", $kind, "{", $key, $(",\n  ", stringify!($field), " = {", $value, "}",)+ "\n}"),
        }),+];
    };
}

sources! {
    "balntas2016": "inproceedings" {
        title = "Learning Local Feature Descriptors with Triplets and Shallow Convolutional Neural Networks",
        author = "Balntas, Vassileios and Riba, Edgar and Ponsa, Daniel and Mikolajczyk, Krystian",
        booktitle = "BMVC", year = "2016",
    }
    "barz2019": "inproceedings" {
        title = "Hierarchy-based Image Embeddings for Semantic Image Retrieval",
        author = "Barz, Bj{\\\"o}rn and Denzler, Joachim",
        booktitle = "WACV", year = "2019",
    }
    "bertinetto2020": "inproceedings" {
        title = "Making Better Mistakes: Leveraging Class Hierarchies with Deep Networks",
        author = "Bertinetto, Luca and Mueller, Romain and Tertikas, Konstantinos and Samangooei, Sina and Lord, Nicholas A.",
        booktitle = "CVPR", year = "2020",
    }
    "brown2020": "inproceedings" {
        title = "Smooth-AP: Smoothing the Path Towards Large-Scale Image Retrieval",
        author = "Brown, Andrew and Xie, Weidi and Kalogeiton, Vicky and Zisserman, Andrew",
        booktitle = "ECCV", year = "2020",
    }
    "cakir2019": "inproceedings" {
        title = "Deep Metric Learning to Rank",
        author = "Cakir, Fatih and He, Kun and Xia, Xide and Kulis, Brian and Sclaroff, Stan",
        booktitle = "CVPR", year = "2019",
    }
    "ermolov2022": "inproceedings" {
        title = "Hyperbolic Vision Transformers: Combining Improvements in Metric Learning",
        author = "Ermolov, Aleksandr and Mirvakhabova, Leyla and Khrulkov, Valentin and Sebe, Nicu and Oseledets, Ivan",
        booktitle = "CVPR", year = "2022",
    }
    "hadsell2006": "inproceedings" {
        title = "Dimensionality Reduction by Learning an Invariant Mapping",
        author = "Hadsell, Raia and Chopra, Sumit and LeCun, Yann",
        booktitle = "CVPR", year = "2006",
    }
    "he2018": "inproceedings" {
        title = "Hashing as Tie-Aware Learning to Rank",
        author = "He, Kun and Cakir, Fatih and Bargal, Sarah Adel and Sclaroff, Stan",
        booktitle = "CVPR", year = "2018",
    }
    "hermans2017": "misc" {
        title = "In Defense of the Triplet Loss for Person Re-Identification",
        author = "Hermans, Alexander and Beyer, Lucas and Leibe, Bastian",
        howpublished = "arXiv:1703.07737", year = "2017",
    }
    "kim2020": "inproceedings" {
        title = "Proxy Anchor Loss for Deep Metric Learning",
        author = "Kim, Sungyeon and Kim, Dongwon and Cho, Minsu and Kwak, Suha",
        booktitle = "CVPR", year = "2020",
    }
    "kim2023": "inproceedings" {
        title = "HIER: Metric Learning Beyond Class Labels via Hierarchical Regularization",
        author = "Kim, Sungyeon and Jeong, Boseung and Kwak, Suha",
        booktitle = "CVPR", year = "2023",
    }
    "li2016": "inproceedings" {
        title = "Feature Learning based Deep Supervised Hashing with Pairwise Labels",
        author = "Li, Wu-Jun and Wang, Sheng and Kang, Wang-Cheng",
        booktitle = "IJCAI", year = "2016",
    }
    "movshovitz2017": "inproceedings" {
        title = "No Fuss Distance Metric Learning Using Proxies",
        author = "Movshovitz-Attias, Yair and Toshev, Alexander and Leung, Thomas K. and Ioffe, Sergey and Singh, Saurabh",
        booktitle = "ICCV", year = "2017",
    }
    "musgrave2020": "misc" {
        title = "PyTorch Metric Learning",
        author = "Musgrave, Kevin and Belongie, Serge and Lim, Ser-Nam",
        howpublished = "arXiv:2008.09164", year = "2020",
    }
    "qian2019": "inproceedings" {
        title = "SoftTriple Loss: Deep Metric Learning Without Triplet Sampling",
        author = "Qian, Qi and Shang, Lei and Sun, Baigui and Hu, Juhua and Li, Hao and Jin, Rong",
        booktitle = "ICCV", year = "2019",
    }
    "ramzi2021": "inproceedings" {
        title = "Robust and Decomposable Average Precision for Image Retrieval",
        author = "Ramzi, Elias and Thome, Nicolas and Rambour, Cl{\\'e}ment and Audebert, Nicolas and Bitot, Xavier",
        booktitle = "NeurIPS", year = "2021",
    }
    "ramzi2022": "inproceedings" {
        title = "Hierarchical Average Precision Training for Pertinent Image Retrieval",
        author = "Ramzi, Elias and Audebert, Nicolas and Thome, Nicolas and Rambour, Cl{\\'e}ment and Bitot, Xavier",
        booktitle = "ECCV", year = "2022",
    }
    "revaud2019": "inproceedings" {
        title = "Learning with Average Precision: Training Image Retrieval with a Listwise Loss",
        author = "Revaud, J{\\'e}r{\\^o}me and Almaz{\\'a}n, Jon and Rezende, Rafael S. and de Souza, C{\\'e}sar",
        booktitle = "ICCV", year = "2019",
    }
    "rolinek2020": "inproceedings" {
        title = "Optimizing Rank-Based Metrics with Blackbox Differentiation",
        author = "Rol{\\'\\i}nek, Michal and Musil, V{\\'\\i}t and Paulus, Anselm and Vlastelica, Marin and Michaelis, Claudio and Martius, Georg",
        booktitle = "CVPR", year = "2020",
    }
    "schroff2015": "inproceedings" {
        title = "FaceNet: A Unified Embedding for Face Recognition and Clustering",
        author = "Schroff, Florian and Kalenichenko, Dmitry and Philbin, James",
        booktitle = "CVPR", year = "2015",
    }
    "sun2021": "inproceedings" {
        title = "Dynamic Metric Learning: Towards a Scalable Metric Space To Accommodate Multiple Semantic Scales",
        author = "Sun, Yifan and Zhu, Yuke and Zhang, Yuhan and Zheng, Pengkun and Qiu, Xi and Zhang, Chi and Wei, Yichen",
        booktitle = "CVPR", year = "2021",
    }
    "teh2020": "inproceedings" {
        title = "ProxyNCA++: Revisiting and Revitalizing Proxy Neighborhood Component Analysis",
        author = "Teh, Eu Wern and DeVries, Terrance and Taylor, Graham W.",
        booktitle = "ECCV", year = "2020",
    }
    "wang2016": "inproceedings" {
        title = "Deep Supervised Hashing with Triplet Labels",
        author = "Wang, Xiaofang and Shi, Yi and Kitani, Kris M.",
        booktitle = "ACCV", year = "2016",
    }
    "wang2019": "inproceedings" {
        title = "Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning",
        author = "Wang, Xun and Han, Xintong and Huang, Weilin and Dong, Dengke and Scott, Matthew R.",
        booktitle = "CVPR", year = "2019",
    }
    "wang2020": "inproceedings" {
        title = "Cross-Batch Memory for Embedding Learning",
        author = "Wang, Xun and Zhang, Haozhi and Huang, Weilin and Scott, Matthew R.",
        booktitle = "CVPR", year = "2020",
    }
    "wu2017": "inproceedings" {
        title = "Sampling Matters in Deep Embedding Learning",
        author = "Wu, Chao-Yuan and Manmatha, R. and Smola, Alexander J. and Kr{\\\"a}henb{\\\"u}hl, Philipp",
        booktitle = "ICCV", year = "2017",
    }
    "xuan2020": "inproceedings" {
        title = "Improved Embeddings with Easy Positive Triplet Mining",
        author = "Xuan, Hong and Stylianou, Abby and Pless, Robert",
        booktitle = "WACV", year = "2020",
    }
    "yang2022": "inproceedings" {
        title = "Hierarchical Proxy-based Loss for Deep Metric Learning",
        author = "Yang, Zhibo and Bastan, Muhammet and Zhu, Xinliang and Gray, Doug and Samaras, Dimitris",
        booktitle = "WACV", year = "2022",
    }
    "yuan2020": "inproceedings" {
        title = "Central Similarity Quantization for Efficient Image and Video Retrieval",
        author = "Yuan, Li and Wang, Tao and Zhang, Xiaopeng and Tay, Francis EH and Jie, Zequn and Liu, Wei and Feng, Jiashi",
        booktitle = "CVPR", year = "2020",
    }
    "zhai2019": "inproceedings" {
        title = "Classification is a Strong Baseline for Deep Metric Learning",
        author = "Zhai, Andrew and Wu, Hao-Yu",
        booktitle = "BMVC", year = "2019",
    }
    "zhang2019": "misc" {
        title = "Semantic Hierarchy Preserving Deep Hashing for Large-Scale Image Retrieval",
        author = "Zhang, Ming and Zhe, Xuefei and Ou-Yang, Le and Chen, Shifeng and Yan, Hong",
        howpublished = "arXiv:1901.11259", year = "2019",
    }
    "zhe2020": "article" {
        title = "Deep Class-Wise Hashing: Semantics-Preserving Hashing via Class-Wise Loss",
        author = "Zhe, Xuefei and Chen, Shifeng and Yan, Hong",
        journal = "IEEE Transactions on Neural Networks and Learning Systems", year = "2020",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_there_once_and_in_order() {
        assert!(SOURCES.windows(2).all(|pair| pair[0].key < pair[1].key), "sort the entries by key");
        assert!(source("ramzi2022").unwrap().bibtex.starts_with("@inproceedings{ramzi2022,\n  title = {"));
        assert_eq!(source("nobody1900"), None);
    }
}
