package structures

// Match says whether name matches a glob pattern of Redis: * stands for any run
// of bytes, ? for one byte, [abc], [a-z] and [^a] for one byte of a class, and a
// backslash takes the next byte literally. It agrees with Redis in the corners
// too: a class may lack its closing bracket, a range may be given backwards and
// compares bytes as signed, and nothing but the empty pattern and the lone
// star, which callers there test for themselves, matches the empty name.
//
// Where Redis recurses at a star, this goes back to the last one only: an earlier star that takes
// more cannot help, because the part after the later one then has fewer places to match. The cost
// is O(len(pattern) * len(name)) at worst, and linear without stars.
func Match(pattern string, name []byte) bool { return MatchUntil(pattern, name, nil) }

// bytesPerStep is how many bytes of a pattern are compared in about the time of a step of a Txn.
const bytesPerStep = 16

// MatchStep is Match as a part of an atomic unit: it ends with false when that is to end.
func MatchStep(t Steps, pattern string, name []byte) bool {
	if len(pattern)+len(name) < matchedBetween {
		return Match(pattern, name) // at most a millisecond, and the caller counts a step
	}
	return MatchUntil(pattern, name, func(compared int) bool { return t.Step(compared/bytesPerStep) != nil })
}

// matchedBetween is how many bytes of a pattern are compared between two calls of stop.
const matchedBetween = 4096

// MatchUntil is Match that asks stop now and then whether to end, with false; it says how many bytes of the pattern
// have been compared since it asked last. nil never ends it.
func MatchUntil(pattern string, name []byte, stop func(compared int) bool) bool {
	if len(name) == 0 {
		return pattern == "" || pattern == "*"
	}
	p, n, compared := 0, 0, 0
	star, from := -1, 0 // after the last star, and where its rest was tried
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			for p < len(pattern) && pattern[p] == '*' {
				p++
			}
			if p == len(pattern) {
				return true
			}
			star, from = p, n
			continue
		}
		if p < len(pattern) {
			next, ok := matchOne(pattern, p, name[n])
			if compared += next - p; compared >= matchedBetween {
				if stop != nil && stop(compared) {
					return false
				}
				compared = 0
			}
			if ok {
				p, n = next, n+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		from++
		p, n = star, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches c against the element of pattern at p, which is no star, and
// returns where the next element starts.
func matchOne(pattern string, p int, c byte) (next int, ok bool) {
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		return matchClass(pattern, p+1, c)
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	return p + 1, pattern[p] == c
}

// matchClass is matchOne after an opening bracket.
func matchClass(pattern string, p int, c byte) (next int, ok bool) {
	not := p < len(pattern) && pattern[p] == '^'
	if not {
		p++
	}
	for ; p < len(pattern) && pattern[p] != ']'; p++ {
		switch left := len(pattern) - p; {
		case left >= 2 && pattern[p] == '\\':
			p++
			ok = ok || pattern[p] == c
		case left >= 3 && pattern[p+1] == '-':
			low, high := int8(pattern[p]), int8(pattern[p+2])
			if low > high {
				low, high = high, low
			}
			p += 2
			ok = ok || low <= int8(c) && int8(c) <= high
		default:
			ok = ok || pattern[p] == c
		}
	}
	return min(p+1, len(pattern)), ok != not
}
