from asyncfed.problems.initial_params import initial_key


def test_server_and_clients_have_keys_of_their_own_that_follow_the_seed():
    keys = [initial_key(seed, client) for seed in (0, 1) for client in (None, 0, 1)]
    assert len(set(keys)) == 6
    assert keys[:3] == [initial_key(0, client) for client in (None, 0, 1)]
    assert all(0 <= key < 2**64 for key in keys)
