/** The stream of the process, read by `EventSource`, which resumes where it was cut off. Runs in the worker, or in a page without one. */
import type { ConsoleEvent } from '#contract'
import { eventNames, type FeedMessage, type FeedStatus } from './messages.ts'

/** After a refusal that `EventSource` does not try again, such as too many streams. */
const retryMs = 5000

/** Opens the stream, and calls `tell` for each event and each change of its status. */
export function openSource(tell: (message: FeedMessage) => void): () => void {
  let source: EventSource | undefined
  let retry: ReturnType<typeof setTimeout> | undefined
  let lastAt: number | undefined
  const report = (status: FeedStatus) => tell({ kind: 'status', status, lastAt })
  const open = () => {
    report('connecting')
    source = new EventSource('/api/1/events')
    source.onopen = () => {
      lastAt = Date.now()
      report('live')
    }
    source.onerror = () => {
      if (source?.readyState !== EventSource.CLOSED) return report('waiting')
      report('ended')
      retry = setTimeout(open, retryMs)
    }
    for (const name of eventNames) {
      source.addEventListener(name, ({ data }: MessageEvent<string>) => {
        lastAt = Date.now()
        tell({ kind: 'event', event: { event: name, data: JSON.parse(data) } as ConsoleEvent })
      })
    }
  }
  open()
  return () => {
    clearTimeout(retry)
    source?.close()
  }
}
