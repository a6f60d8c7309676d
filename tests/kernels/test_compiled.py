"""A kernel on disk is used again only while nothing it is made of has changed."""

from asyncfed.kernels import compiled, merging


def key_of(kernel):
    signature = kernel.signatures[0] if kernel.signatures else None
    return kernel._cache._index_key(signature, kernel.targetctx.codegen())


def test_a_change_of_any_file_of_the_room_is_another_key(monkeypatch):
    before = key_of(merging.mix)
    assert key_of(merging.mix) == before
    monkeypatch.setattr(compiled, "source_stamp", lambda: "as if another file had changed")
    assert key_of(merging.mix) != before


def test_the_stamp_follows_the_text_of_every_file(monkeypatch, tmp_path):
    stamps = []
    for text in ("one = 1", "one = 2"):
        (tmp_path / "compiled.py").write_text("")
        (tmp_path / "losses.py").write_text(text)
        monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
        stamps.append(compiled.source_stamp.__wrapped__())
    assert stamps[0] != stamps[1]


def test_a_kernel_says_whether_it_was_compiled(tmp_path, monkeypatch):
    from asyncfed.kernels.compiled import compiled, is_compiled

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def double(x):
        return 2 * x

    kernel = compiled(double)
    assert not is_compiled(kernel)
    assert kernel(2) == 4
    assert is_compiled(kernel)
