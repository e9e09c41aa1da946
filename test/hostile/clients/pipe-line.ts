/** A server on stdio under attack: its pipes, written to and read from by hand. */
import { startTarget, type Target } from './target.ts'
import { type Era, type Frame, hello, type Id, isModern } from './wire.ts'

export class PipeLine {
  readonly target: Target
  readonly era: Era
  /** Lines that came, whole ones. */
  readonly lines: string[] = []
  ended = false
  #rest = ''
  readonly #wakers: (() => void)[] = []

  constructor(target: Target, era: Era) {
    this.target = target
    this.era = era
    target.child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#take(text))
    target.child.on('exit', () => {
      this.ended = true
      this.#wake()
    })
  }

  write(data: string | Buffer): Promise<void> {
    return new Promise(done => {
      this.target.child.stdin?.write(data, () => done())
    })
  }

  say(frame: unknown): Promise<void> {
    return this.write(`${JSON.stringify(frame)}\n`)
  }

  /** Stops or goes on to read what the server says. */
  read(on: boolean): void {
    if (on) this.target.child.stdout?.resume()
    else this.target.child.stdout?.pause()
  }

  frames(): Frame[] {
    return this.lines.flatMap(line => [JSON.parse(line)].flat() as Frame[])
  }

  under(id: Id): Frame[] {
    return this.frames().filter(frame => frame['id'] === id && frame['method'] === undefined)
  }

  async until(fits: () => boolean, ms = 5_000): Promise<boolean> {
    const end = performance.now() + ms
    while (!fits()) {
      const left = end - performance.now()
      if (this.ended || left <= 0) return fits()
      await new Promise<void>(done => {
        const timer = setTimeout(done, left)
        this.#wakers.push(() => {
          clearTimeout(timer)
          done()
        })
      })
    }
    return true
  }

  #take(text: string): void {
    const parts = (this.#rest + text).split('\n')
    this.#rest = parts.pop() ?? ''
    this.lines.push(...parts)
    this.#wake()
  }

  #wake(): void {
    for (const fn of this.#wakers.splice(0)) fn()
  }
}

export async function openPipe(era: Era, unrated = false): Promise<PipeLine> {
  const pipe = new PipeLine(await startTarget({ carrier: 'stdio', unrated }), era)
  if (isModern(era)) return pipe
  await pipe.say(hello(era))
  await pipe.until(() => pipe.under(0).length > 0)
  await pipe.say({ jsonrpc: '2.0', method: 'notifications/initialized' })
  return pipe
}
