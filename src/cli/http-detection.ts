/** A program that serves at an address instead of its standard input and output: noticed by what it says, so that nobody waits for it. */
import type { ConnectOptions } from '../client/index.ts'
import { tapConnection } from '../recording/tap.ts'

/** The address at which a program says that it serves; of a bare port the one of this machine. */
export function addressIn(line: string): string | undefined {
  const says = /\b(?:listen|running|serv|start|available|ready)\w*\b[^\n]*?/.source
  const [, url] = new RegExp(`${says}(https?://[\\w.[\\]:-]*:\\d+[\\w./-]*)`, 'i').exec(line) ?? []
  if (url !== undefined) return url.replace(/[.,]+$/, '')
  const [, port] = new RegExp(`${says}\\bport:? ?(\\d{2,5})\\b`, 'i').exec(line) ?? []
  return port === undefined ? undefined : `http://localhost:${port}`
}

/** Why no more is waited for. */
export class ServesHttp extends Error {
  override readonly name = 'ServesHttp'
  readonly url: string

  constructor(url: string) {
    super(`It serves HTTP at ${url}, and says nothing on its standard output`)
    this.url = url
  }
}

/** Who serves HTTP and speaks on stdio as well has answered so long after the last question. */
const answerMs = 2_000

interface HttpWatch {
  /** Aborted once the program has told an address, and has answered nothing on its output. */
  readonly signal: AbortSignal
  line(text: string): void
  readonly wrap: NonNullable<ConnectOptions['wrap']>
  end(): void
}

/** `probeMs`: when the handshake goes out at the latest; an older server may be silent until then. */
export function watchForHttp(probeMs: number): HttpWatch {
  const found = new AbortController()
  const asked = performance.now() + probeMs
  let timer: ReturnType<typeof setTimeout> | undefined
  const line = (text: string): void => {
    const url = timer === undefined ? addressIn(text) : undefined
    if (url === undefined) return
    const waitMs = Math.max(0, asked - performance.now()) + answerMs
    timer = setTimeout(() => found.abort(new ServesHttp(url)), waitMs)
    timer.unref()
  }
  return {
    signal: found.signal,
    line,
    wrap: connection =>
      tapConnection(connection, ({ way, text }) => {
        if (way === 'in' && !text.startsWith('{') && !text.startsWith('[')) line(text)
      }),
    end: () => clearTimeout(timer),
  }
}
