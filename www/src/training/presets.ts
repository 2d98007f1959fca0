import type { Space } from "../messages/training.js";

/** What one example sets, as the address writes it. */
export interface Example {
  name: string;
  title: string;
  /** What happens and what to look at. */
  text: string;
  space: Space;
  /** The losses of the runs A and B, and the sizes of their batches. */
  a: string;
  b: string;
  batch_a: number;
  batch_b: number;
}

/** The statements hold for seed 1 and are tested in web/training-ground/tests/runs.rs. */
export const EXAMPLES: readonly Example[] = [
  {
    name: "species",
    title: "Species alone scatter families",
    text: "Both networks see the same batches. NormSoftmax (A) learns to tell species apart and nothing else. HAPPIER (B) also learns who is related. Look at the drawings: each one is at the mean of its family. In A they sink to the centre, because a family’s species point in all directions; in B they move to the rim. AP of families tells the same.",
    space: "circle",
    a: "norm_softmax",
    b: "happier",
    batch_a: 64,
    batch_b: 64,
  },
  {
    name: "lambda",
    title: "What λ does",
    text: "HAPPIER adds a clustering term of weight λ to its ranking term. The clustering term knows only species. With λ = 0.5 (B) scores mean the same in every batch: the gap is smaller, and AP of species higher. The price is AP of families, which is lower than with λ = 0 (A).",
    space: "sphere",
    a: "happier;lambda=0",
    b: "happier;lambda=0.5",
    batch_a: 32,
    batch_b: 32,
  },
  {
    name: "batch",
    title: "Small batches hide mistakes",
    text: "Smooth-AP ranks inside one batch only. In a batch of 8 creatures (A) few strangers can be in the way, so the loss soon has nothing left to correct, while the ranking of all creatures stays poor. The decomposability gap says how much better AP looks in batches of that size than over all creatures. With 64 creatures (B) it is far smaller.",
    space: "circle",
    a: "smooth_ap",
    b: "smooth_ap",
    batch_a: 8,
    batch_b: 64,
  },
  {
    name: "hier",
    title: "HIER’s proxies grow a tree",
    text: "HIER adds vectors that stand for ancestors (+). It draws a common ancestor for every triplet, without looking at labels. Lines join each species with its ancestor, that one with the family’s, and so on. In A ancestors are drawn as in the paper’s equation 7, whose noise is so large that the choice is almost random: they all end up at the rim. In B they are drawn as in the public code. There the ancestors of orders stay near the centre and those of species move outwards, as in a tree. The loss of classes beside it is the same.",
    space: "disk",
    a: "hyperbolic_cross_entropy+hier_text",
    b: "hyperbolic_cross_entropy+hier",
    batch_a: 64,
    batch_b: 64,
  },
];
