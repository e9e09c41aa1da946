/** What was said on a stage, by whom and on which line, in order: the evidence of every verdict. */
import { isRecord } from '../../../jsonrpc/message.ts'

export type Frame = Readonly<Record<string, unknown>>

/** What HTTP said beside a message. */
export interface Http {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

export interface Said {
  /** Milliseconds since the play began. */
  readonly at: number
  readonly from: 'client' | 'server'
  readonly text: string
  /** Absent: the text is no JSON object. */
  readonly frame?: Frame
  /** The connection it was said on; over HTTP the exchange. */
  readonly line: number
  readonly http?: Http
}

/** An HTTP request that brought no message. */
export interface Visit extends Http {
  readonly at: number
  readonly line: number
}

/** A play says little; who floods a stage is not written down for ever. */
const MOST = 20_000

export class Book {
  readonly said: Said[] = []
  readonly visits: Visit[] = []
  /** Lines that the client let go of before they were answered. */
  readonly hungUp: { readonly line: number; readonly at: number }[] = []
  /** What handlers wrote down for the verdict. */
  readonly notes = new Map<string, unknown>()
  readonly #began = performance.now()
  #lines = 0
  #wake: (() => void)[] = []

  get now(): number {
    return performance.now() - this.#began
  }

  newLine(): number {
    return ++this.#lines
  }

  heard(text: string, line: number, http?: Http): Said {
    return this.#note('client', text, line, http)
  }

  told(text: string, line: number): void {
    this.#note('server', text, line)
  }

  visit(visit: Http, line: number): void {
    if (this.visits.length < MOST) this.visits.push({ ...visit, at: this.now, line })
    this.stir()
  }

  left(line: number): void {
    this.hungUp.push({ line, at: this.now })
    this.stir()
  }

  /** What the client has sent with this method so far. */
  of(method: string): readonly Said[] {
    return this.said.filter(({ from, frame }) => from === 'client' && frame?.['method'] === method)
  }

  /** Waits for what `look` finds; undefined when the time is over. */
  async until<T>(look: () => T | undefined, ms: number): Promise<T | undefined> {
    const end = this.now + ms
    for (;;) {
      const found = look()
      if (found !== undefined) return found
      const left = end - this.now
      if (left <= 0) return undefined
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, left)
        this.#wake.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
  }

  stir(): void {
    for (const wake of this.#wake.splice(0)) wake()
  }

  #note(from: Said['from'], text: string, line: number, http?: Http): Said {
    const frame = read(text)
    const said: Said = {
      at: this.now,
      from,
      text,
      line,
      ...(frame === undefined ? {} : { frame }),
      ...(http === undefined ? {} : { http }),
    }
    if (this.said.length < MOST) this.said.push(said)
    this.stir()
    return said
  }
}

function read(text: string): Frame | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

export function paramsOf(said: Said | undefined): Frame {
  const params = said?.frame?.['params']
  return isRecord(params) ? params : {}
}

export function metaIn(said: Said | undefined): Frame {
  const meta = paramsOf(said)['_meta']
  return isRecord(meta) ? meta : {}
}
