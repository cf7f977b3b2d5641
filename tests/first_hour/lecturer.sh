# A lecturer who prepares a lecture on attention: a formula that runs, pictures for slides, homework.
# with: translator
## paths/lecturer.md
dragoman inspect runs/ende "The dog is sleeping." --out attention
dragoman inspect tree runs/ende "The dog is sleeping." --out tree
dragoman positions kind=sinusoidal --out positions
dragoman describe model.preset=tiny --draw sketches
