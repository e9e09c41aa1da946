/**
 * Plays the server's part of a recorded conversation. Each line of a file is one step:
 *   `h {…}` the host must send a message with at least these members; a value "$x" is remembered, "*" is anything
 *   `s {…}` the server sends this, with "$x" filled in; `raw …` it sends the text as it is
 *   `do …` the test does something with the client
 * Whatever else the host sends is an error.
 */
import { readFileSync } from 'node:fs'
import { isRecord } from '../../../src/jsonrpc/message.ts'
import type { RawServer } from '../raw/raw-server.ts'
import type { Frame } from '../raw/script.ts'

export interface Step {
  readonly kind: 'h' | 's' | 'raw' | 'do'
  readonly text: string
  readonly line: number
}

export function readSteps(file: string): Step[] {
  const lines = readFileSync(new URL(`${file}.txt`, import.meta.url), 'utf8').split('\n')
  return lines.flatMap((text, at) => {
    const [, kind, rest = ''] = /^(h|s|raw|do) (.*)$/.exec(text) ?? []
    return kind === undefined ? [] : [{ kind: kind as Step['kind'], text: rest, line: at + 1 }]
  })
}

export class Player {
  readonly #raw: RawServer
  readonly #steps: Step[]
  readonly #known = new Map<string, unknown>()
  readonly #taken = new Set<Frame>()

  constructor(raw: RawServer, steps: Step[]) {
    this.#raw = raw
    this.#steps = steps
  }

  /** Plays on until the test has to do something; gives what. Undefined: it is over. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const step = this.#steps.shift()
      if (step === undefined) return undefined
      if (step.kind === 'do') return step.text
      if (step.kind === 'raw') this.#raw.write(`${step.text}\n`)
      else if (step.kind === 's') this.#send(JSON.parse(step.text))
      else await this.#hear(JSON.parse(step.text))
    }
  }

  /** What the host has sent beside what was expected of it. */
  get rest(): Frame[] {
    return this.#raw.script.heard.filter(frame => !this.#taken.has(frame))
  }

  #send(frame: Frame): void {
    const ending = this.#raw.carrier === 'stdio' ? '\n' : ''
    this.#raw.write(JSON.stringify({ jsonrpc: '2.0', ...(this.#filled(frame) as Frame) }) + ending)
  }

  async #hear(expected: Frame): Promise<void> {
    const frame = await this.#raw.script.until(() => this.rest.find(one => this.#fits(expected, one)))
    this.#taken.add(frame)
    this.#learn(expected, frame)
  }

  #fits(expected: unknown, actual: unknown): boolean {
    if (expected === '*') return actual !== undefined
    if (typeof expected === 'string' && expected.startsWith('$')) {
      return this.#known.has(expected) ? this.#known.get(expected) === actual : actual !== undefined
    }
    if (Array.isArray(expected)) {
      return (
        Array.isArray(actual) && expected.length === actual.length && expected.every((one, at) => this.#fits(one, actual[at]))
      )
    }
    if (!isRecord(expected)) return expected === actual
    // Absent is written as null.
    return (
      isRecord(actual) &&
      Object.entries(expected).every(([name, value]) =>
        value === null ? actual[name] === undefined : this.#fits(value, actual[name]),
      )
    )
  }

  #learn(expected: unknown, actual: unknown): void {
    if (typeof expected === 'string' && expected.startsWith('$')) this.#known.set(expected, actual)
    if (!isRecord(expected) || !isRecord(actual)) return
    for (const [name, value] of Object.entries(expected)) this.#learn(value, actual[name])
  }

  #filled(value: unknown): unknown {
    if (typeof value === 'string' && this.#known.has(value)) return this.#known.get(value)
    if (Array.isArray(value)) return value.map(one => this.#filled(one))
    return isRecord(value) ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.#filled(one)])) : value
  }
}
