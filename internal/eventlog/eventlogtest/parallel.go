package eventlogtest

import "sync"

// InParallel calls f with the numbers below n, 64 at a time.
func InParallel(n int, f func(i int)) {
	var all sync.WaitGroup
	for w := range 64 {
		all.Go(func() {
			for i := w; i < n; i += 64 {
				f(i)
			}
		})
	}
	all.Wait()
}
