"""How atoms sit among each other: what stages that place atoms and stages that correct them both stand on.

``atoms`` gives positions, elements, roles and bonds, ``cell_list`` neighbours, ``detect`` pairs too close, ``chains``
and ``audit`` what lies in each other (pierced rings, crossed strands) or is strained, ``passages`` what a move must not
do, ``scene`` how well a group of atoms sits in its place, ``torsions`` and ``sidechain`` the turns of a side chain.
"""
