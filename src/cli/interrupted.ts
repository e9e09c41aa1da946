/** Verbs that run until somebody ends them. */

export function untilInterrupted(signal: AbortSignal): Promise<void> {
  return new Promise(done => {
    if (signal.aborted) return done()
    signal.addEventListener('abort', () => done(), { once: true })
  })
}
