"""Data sets by name, split into one training row per peer and held-out rows that measure the model.

- ``split``      a name and a seed to training and held-out rows
- ``small``      what scikit-learn carries, and synthetic rows of any number
- ``images``     MNIST, Fashion-MNIST and CIFAR-10 as bytes, with their published split
- ``catalogue``  their classes, files, sums and sources
- ``formats``    IDX and CIFAR-10's binary records
- ``files``      where files are looked for, and whether they are the published ones
- ``download``   fetching them

The classes of a data set are written here, never read off its labels: inferring them would leak who holds a rare one.
scikit-learn is imported where it is used, since it takes a second and peers never need it.
"""

from p2p_labeldp.datasets.images import Images, read_images
from p2p_labeldp.datasets.split import SYNTHETIC_PEERS, Split, known, label_space_of, load

__all__ = ["load", "known", "label_space_of", "Split", "SYNTHETIC_PEERS", "read_images", "Images"]
