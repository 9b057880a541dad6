"""Contact with the ground: laws for the force on a point, terrains, and what a robot's contact
points feel.
"""

from ramify.contact.collision_pairs import CollisionPair, collision_pairs
from ramify.contact.contact_record import Contacts, forces, kernel
from ramify.contact.firm import Dusty, Firm
from ramify.contact.ground import LAWS, Ground, Normal, Reaction
from ramify.contact.grounds import as_ground
from ramify.contact.hard import CONTACTS, Hard
from ramify.contact.hunt_crossley import HuntCrossley
from ramify.contact.robot_on_ground import ContactText
from ramify.contact.terrain import TERRAINS, Flat, HeightField, Slope, Terrain

__all__ = [
    "CONTACTS", "LAWS", "TERRAINS", "CollisionPair", "ContactText", "Contacts", "Dusty",
    "Firm", "Flat", "Ground", "Hard", "HeightField", "HuntCrossley", "Normal", "Reaction", "Slope",
    "Terrain", "as_ground", "collision_pairs", "forces", "kernel",
]  # fmt: skip
