package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"
)

// scanCount is how many keys a page of a scan has, or about so: COUNT is a hint. A thousand hold up other clients of a
// Redis for less than a millisecond, and make the round trips few.
const scanCount = 1000

// runScan lists the names of the keys that the options ask for, each as the reply to a command would be printed. They
// are printed as SCAN finds them, in no order, so a scan of any size takes no memory and stops no client of a server. A
// key may come more than once. O(keys of the namespace), also with a pattern or a type, which choose among those found.
func runScan(ctx context.Context, s *session, c *cli.Context) (err error) {
	out := bufio.NewWriterSize(s.Out, 64<<10)
	defer func() { err = cmp.Or(err, out.Flush()) }()
	for cursor := ""; cursor != "0"; {
		args := []string{"SCAN", cmp.Or(cursor, "0"), "COUNT", strconv.Itoa(scanCount)}
		if c.IsSet("pattern") {
			args = append(args, "MATCH", c.String("pattern"))
		}
		if c.IsSet("type") {
			args = append(args, "TYPE", c.String("type"))
		}
		r, err := s.query(ctx, args...)
		if err != nil {
			return err
		}
		if len(r.Items) != 2 {
			return fmt.Errorf("SCAN: a reply of another form: %q", r.String())
		}
		for _, key := range r.Items[1].Items {
			if _, err := out.Write(s.render(nil, key)); err != nil {
				return err
			}
		}
		cursor = r.Items[0].String()
	}
	return nil
}
