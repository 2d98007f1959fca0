"""Search, classes and the taxonomy."""

import akin
import numpy as np
import pytest
from conftest import Creatures


def test_nearest_finds_what_a_full_sort_finds(creatures: Creatures, queries: Creatures) -> None:
    rows = [array / np.linalg.norm(array, axis=1, keepdims=True) for array in (queries.embeddings, creatures.embeddings)]
    scores = rows[0] @ rows[1].T
    found = akin.nearest(queries.embeddings, creatures.embeddings, k=7)
    assert found.items.shape == found.scores.shape == (60, 7)
    assert (found.items == np.argsort(-scores, axis=1, kind="stable")[:, :7]).all()
    assert found.scores == pytest.approx(np.take_along_axis(scores, found.items, axis=1), abs=1e-6)


def test_no_query_finds_itself(creatures: Creatures) -> None:
    found = akin.nearest(creatures.embeddings, k=3, similarity="euclidean")
    assert (found.items != np.arange(300)[:, None]).all()
    assert akin.nearest(creatures.embeddings, k=1000).items.shape == (300, 299)
    assert akin.nearest(creatures.embeddings, k=0).items.shape == (300, 0)


def test_a_classifier_keeps_its_promise(creatures: Creatures, queries: Creatures) -> None:
    tight = [Creatures(count, seed) for count, seed in ((2000, 5), (500, 6))]
    classifier = akin.Classifier(tight[0].embeddings, tight[0].labels)
    answers = classifier(tight[1].embeddings, promise=0.9)
    rows = [[str(name) for name in row] for row in tight[1].rows]
    said = [(answer.path, row) for answer, row in zip(answers, rows, strict=True) if answer.path]
    right = sum(path == row[: len(path)] for path, row in said) / len(said)
    assert len(said) > 250 and right > 0.87
    for answer in answers:
        certainties = [certainty for _, certainty in answer.votes]
        assert certainties == sorted(certainties, reverse=True)
        assert answer.certainty == (certainties[len(answer.path) - 1] if answer.path else None)
    assert akin.classify(tight[1].embeddings, tight[0].embeddings, tight[0].labels, promise=0.9) == answers
    far = classifier(-100 * np.ones((1, 16)) * tight[0].embeddings.mean(axis=0))
    assert len(far) == 1


def test_what_is_refused(creatures: Creatures) -> None:
    with pytest.raises(akin.ConfigError, match="`k` is -1"):
        akin.nearest(creatures.embeddings, k=-1)
    with pytest.raises(akin.EmbeddingsError, match="16 numbers"):
        akin.nearest(creatures.embeddings, creatures.embeddings[:, :3])
    with pytest.raises(akin.TaxonomyError, match="300 embeddings and 299 rows"):
        akin.Classifier(creatures.embeddings, creatures.rows[1:])
    with pytest.raises(akin.ConfigError, match="promise"):
        akin.classify(creatures.embeddings, creatures.embeddings, creatures.labels, promise=0.2)
    with pytest.raises(akin.EmbeddingsError, match="fewer than two"):
        akin.Classifier(creatures.embeddings[:1], creatures.rows[:1])


def test_a_taxonomy(creatures: Creatures) -> None:
    taxonomy = akin.Taxonomy(creatures.labels)
    assert repr(taxonomy) == "Taxonomy of 300 items: 3 family, 9 genus, 18 species"
    assert taxonomy.path(0) == creatures.rows[0].tolist()
    shared = (creatures.rows == creatures.rows[0]).sum(axis=1)
    assert (taxonomy.shared_levels(0) == shared).all()
    assert [taxonomy.classes(3)[number] for number in taxonomy.ids[:, 2]] == creatures.labels["species"].tolist()
    genus_of = taxonomy.parents("species")
    assert (genus_of[taxonomy.ids[:, 2]] == taxonomy.ids[:, 1]).all()
    cut = akin.Taxonomy([["owl", "tawny owl"], ["owl", None], ["finch", None]], levels=["kind", "species"])
    assert cut.ids.tolist() == [[0, 0], [0, -1], [1, -1]]
    assert cut.shared_levels(1).tolist() == [1, 1, 0]
    assert cut.path(1) == ["owl"]
    with pytest.raises(akin.TaxonomyError, match="no level"):
        taxonomy.classes("kingdom")
