# SPDX-License-Identifier: MIT
"""Steps of the networks of scripts/networks.lua beside PyTorch, which take up
to seconds: cross entropy and SGD, n samples. Smaller networks are rows of the
subject operations.
"""
from suite_rows import Group, lines

row = Group("networks", turns=9, clock="wall", fresh="row", results=None,
            shown=("quartiles",))
for number, (name, samples) in enumerate((
        ("FCN-5", 64), ("AlexNet", 16), ("ResNet-50", 16), ("LSTM-64", 64)), 1):
    row(name, samples, "", "step()", setup=(lines(f"""
        local network = dofile(here .. "/../networks.lua")[{number}]
        local net, x, y = network.make(small)
        local opt = optim.SGD(net, {{lr = 0.01}})
        function step()
          local loss = F.cross_entropy(net(x), y)
          opt:zero_grad()
          loss:backward()
          opt:step()
        end"""), lines(f"""
        import networks
        net, x, y = networks.make("{name}", small)
        opt = optim.SGD(net.parameters(), lr=0.01)
        def step():
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        """)))
