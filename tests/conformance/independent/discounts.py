"""How much a stale update counts: s(0) = 1."""


def s(discount, tau):
    """Constant, polynomial (1 + tau)^-p, or hinge: 1 up to b, then 1 / (a (tau - b) + 1)."""
    if discount["kind"] == "constant":
        return 1.0
    if discount["kind"] == "polynomial":
        return (1.0 + tau) ** -discount["power"]
    return 1.0 if tau <= discount["grace"] else 1.0 / (discount["slope"] * (tau - discount["grace"]) + 1.0)
