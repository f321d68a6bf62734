"""Simulated fabrics behind the judge: switches of several levels, testers, and faults that come and go.

    tree = Tree(hosts=32, rails=2, levels=2)
    network = Network(tree, (Fault("spine", "rail0", group=0, index=1, share=1.0),), seed=7)
    outcome = measured(network, {"mode": "sampled", "rounds": 30})

It plays the network and the testers: it takes the lines of a schedule and returns what testers record of them. It knows
nothing of how the judge comes to its diagnosis; score.py compares the two.
"""
