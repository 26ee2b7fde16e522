package structures

// LCS is a longest common subsequence of two strings: the bytes that both have
// in the same order, not necessarily side by side.
type LCS struct {
	Text    []byte
	Matches []LCSMatch // the runs it is made of, the last one first
}

// LCSMatch is a run of equal bytes: from position A of the one string and from
// position B of the other.
type LCSMatch struct{ A, B, Length int }

// maxLCS bounds the comparisons: Redis's table has four bytes for each.
const maxLCS = MaxString / 4

// LongestCommonSubsequence compares the strings at two keys; one that does not
// exist is empty. Time is O(length * length), memory a bit for each comparison.
func LongestCommonSubsequence(t StringTxn, a, b string) (LCS, error) {
	left, err := lcsOperand(t, a)
	if err != nil {
		return LCS{}, err
	}
	right, err := lcsOperand(t, b)
	if err != nil {
		return LCS{}, err
	}
	if int64(len(left)+1)*int64(len(right)+1) > maxLCS {
		return LCS{}, ErrLCSTooLong
	}
	return longestCommon(t, left, right)
}

// lcsOperand reads a string. A key of another type is refused with a text of its
// own, as in Redis.
func lcsOperand(t StringTxn, key string) ([]byte, error) {
	value, _, err := String{Txn: t, Key: key}.Get(nil)
	if err == ErrWrongType {
		return nil, ErrLCSType
	}
	return value, err
}

// longestCommon is the textbook's dynamic programming, row by row. To walk back
// it is enough to know, of bytes that differ, whether the longer sequence was
// found above: one bit a cell, where a table of lengths has 32.
func longestCommon(t Steps, a, b []byte) (LCS, error) {
	row := make([]uint32, len(b)+1)
	above := make([]uint64, (len(a)*len(b)+63)/64)
	cell := 0
	for _, x := range a {
		if err := t.Step(1 + len(b)/bytesPerStep); err != nil {
			return LCS{}, err
		}
		diagonal := uint32(0)
		for j, y := range b {
			up := row[j+1]
			switch {
			case x == y:
				row[j+1] = diagonal + 1
			case up > row[j]:
				above[cell/64] |= 1 << (cell % 64)
			default:
				row[j+1] = row[j]
			}
			diagonal = up
			cell++
		}
	}
	n := int(row[len(b)])
	lcs := LCS{Text: make([]byte, n)}
	for i, j := len(a)-1, len(b)-1; i >= 0 && j >= 0; {
		cell := i*len(b) + j
		switch {
		case a[i] == b[j]:
			n--
			lcs.Text[n] = a[i]
			lcs.addMatch(i, j)
			i--
			j--
		case above[cell/64]&(1<<(cell%64)) != 0:
			i--
		default:
			j--
		}
	}
	return lcs, nil
}

// addMatch takes a pair of equal bytes, found from the back. It belongs to the
// last run if it is right before it.
func (l *LCS) addMatch(i, j int) {
	if last := len(l.Matches) - 1; last >= 0 {
		if m := &l.Matches[last]; m.A == i+1 && m.B == j+1 {
			m.A, m.B, m.Length = i, j, m.Length+1
			return
		}
	}
	l.Matches = append(l.Matches, LCSMatch{A: i, B: j, Length: 1})
}
