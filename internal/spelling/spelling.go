// Package spelling compares words, so that an error can name the word that was probably
// meant.
package spelling

// Distance returns how many letters have to be changed, added, removed or swapped with
// their neighbour to make one word of the other.
func Distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	before, row := make([]int, len(to)+1), make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range from {
		last := row
		row = make([]int, len(to)+1)
		row[0] = i + 1
		for j := range to {
			change := last[j]
			if from[i] != to[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && from[i] == to[j-1] && from[i-1] == to[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before = last
	}
	return row[len(to)]
}
