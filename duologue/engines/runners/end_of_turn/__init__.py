"""Has the person finished, or is this a pause within a turn?"""
