/**
 * What every duplex carrier promises, as one list of sentences. Each carrier's test runs it against two ends that are
 * really connected: `connectionContract('memory', async () => ({ left, right, cleanup }))`.
 */
import { afterEach, describe, expect, it } from 'vitest'
import { type Connection, ConnectionError, type FrameFault } from '../../src/jsonrpc/connection.ts'

/** Two ends that have not been started; `cleanup` frees whatever is left after both were closed. */
export interface ConnectedEnds {
  readonly left: Connection
  readonly right: Connection
  cleanup(): void | Promise<void>
}

/** One end, started, with all that it received. */
export interface Heard {
  readonly frames: string[]
  readonly faults: FrameFault[]
  /** One entry for each time that `closed` was called. */
  readonly closes: (Error | undefined)[]
  /** Resolves when the condition holds for what was heard; it is looked at after each arrival. */
  until(condition: (heard: Heard) => boolean): Promise<void>
}

/** Starts an end and writes down what arrives; `answer` may send back at once, from within the sink. */
export async function hear(connection: Connection, answer: (frame: string) => void = () => {}): Promise<Heard> {
  const waiting: { condition: (heard: Heard) => boolean; done: () => void }[] = []
  const heard: Heard = {
    frames: [],
    faults: [],
    closes: [],
    until: condition =>
      new Promise(done => {
        if (condition(heard)) done()
        else waiting.push({ condition, done })
      }),
  }
  const look = () => {
    for (const entry of waiting) if (entry.condition(heard)) entry.done()
  }
  await connection.start({
    frame(text) {
      heard.frames.push(text)
      answer(text)
      look()
    },
    fault(fault) {
      heard.faults.push(fault)
      look()
    },
    closed(reason) {
      heard.closes.push(reason)
      look()
    },
  })
  return heard
}

/** Runs the sentences. `open` gives a fresh pair for each of them; `left` and `right` take turns in speaking first. */
export function connectionContract(name: string, open: () => Promise<ConnectedEnds>): void {
  describe(`${name} keeps the contract of connections`, () => {
    const opened: ConnectedEnds[] = []

    async function pair(): Promise<ConnectedEnds> {
      const ends = await open()
      opened.push(ends)
      return ends
    }

    afterEach(async () => {
      for (const { left, right, cleanup } of opened.splice(0)) {
        await Promise.all([left.close(), right.close()])
        await cleanup()
      }
    })

    deliverySentences(pair)
    closingSentences(pair)
  })
}

function deliverySentences(pair: () => Promise<ConnectedEnds>): void {
  it('frames arrive whole and in the order in which they were sent, in both directions', async () => {
    const { left, right } = await pair()
    const [atLeft, atRight] = await Promise.all([hear(left), hear(right)])
    const there = numbered('there', 500)
    const back = numbered('back', 500)
    for (let at = 0; at < 500; at++) {
      void left.send(there[at] ?? '')
      void right.send(back[at] ?? '')
    }
    await Promise.all([atRight.until(hasFrames(500)), atLeft.until(hasFrames(500))])
    expect(atRight.frames).toEqual(there)
    expect(atLeft.frames).toEqual(back)
  })

  it('text of any script, with escapes and line separators inside strings, arrives unchanged', async () => {
    const { left, right } = await pair()
    const [, atRight] = await Promise.all([hear(left), hear(right)])
    const frames = ['äöü € 漢字 🙂 \u2028\u2029\u0085', 'a\nb\r\nc\td"\\', '', '\ud83d alone'].map(text =>
      JSON.stringify({ text }),
    )
    for (const frame of frames) await left.send(frame)
    await atRight.until(hasFrames(frames.length))
    expect(atRight.frames).toEqual(frames)
  })

  it('a frame with line breaks between its tokens arrives as one frame of the same value', async () => {
    const { left, right } = await pair()
    const [, atRight] = await Promise.all([hear(left), hear(right)])
    const value = { jsonrpc: '2.0', params: { text: 'two\nlines' } }
    await left.send(JSON.stringify(value, null, 2).replaceAll('\n', '\r\n'))
    await left.send('{"next":1}')
    await atRight.until(hasFrames(2))
    expect(atRight.frames.map(frame => JSON.parse(frame))).toEqual([value, { next: 1 }])
  })

  it('a frame of a mebibyte arrives whole, and the small one after it comes after it', async () => {
    const { left, right } = await pair()
    const [atLeft] = await Promise.all([hear(left), hear(right)])
    const large = JSON.stringify({ text: 'è'.repeat(512 * 1024) })
    await Promise.all([right.send(large), right.send('{"small":1}')])
    await atLeft.until(hasFrames(2))
    expect(atLeft.frames[0] === large).toBe(true)
    expect(atLeft.frames[1]).toBe('{"small":1}')
  })

  it('an answer may be sent from within the sink that hears the question', async () => {
    const { left, right } = await pair()
    const [atLeft] = await Promise.all([hear(left), hear(right, frame => void right.send(`{"answer":${frame}}`))])
    for (let at = 0; at < 20; at++) await left.send(`{"question":${at}}`)
    await atLeft.until(hasFrames(20))
    expect(atLeft.frames).toEqual(Array.from({ length: 20 }, (_, at) => `{"answer":{"question":${at}}}`))
  })

  it('sending returns before the other end hears', async () => {
    const { left, right } = await pair()
    const [, atRight] = await Promise.all([hear(left), hear(right)])
    void left.send('{"n":1}')
    expect(atRight.frames).toEqual([])
    await atRight.until(hasFrames(1))
  })
}

function closingSentences(pair: () => Promise<ConnectedEnds>): void {
  for (const [closing, other] of [
    ['left', 'right'],
    ['right', 'left'],
  ] as const) {
    it(`when ${closing} closes, both ends hear of it once, and our own close is no failure`, async () => {
      const ends = await pair()
      const heard = { left: await hear(ends.left), right: await hear(ends.right) }
      await ends[closing].close()
      await Promise.all([heard[closing].until(isClosed), heard[other].until(isClosed)])
      await Promise.all([ends.left.close(), ends.right.close()])
      expect(heard[closing].closes).toEqual([undefined])
      expect(heard[other].closes).toHaveLength(1)
    })
  }

  it('what was taken before close() still arrives, and nothing arrives after the end', async () => {
    const { left, right } = await pair()
    const [, atRight] = await Promise.all([hear(left), hear(right)])
    const last = ['{"last":1}', JSON.stringify({ text: 'x'.repeat(3_000_000) }), '{"last":3}']
    for (const frame of last) await left.send(frame)
    await left.close()
    await atRight.until(isClosed)
    expect(atRight.frames.map(frame => frame.length)).toEqual(last.map(frame => frame.length))
    expect(atRight.frames.at(-1)).toBe('{"last":3}')
  })

  it('a frame sent after close() is refused with a ConnectionError', async () => {
    const { left, right } = await pair()
    await Promise.all([hear(left), hear(right)])
    await left.close()
    const sent = left.send('{"late":true}')
    expect(sent).toBeInstanceOf(Promise)
    await expect(sent).rejects.toBeInstanceOf(ConnectionError)
  })

  it('a frame sent after the other end closed is refused with a ConnectionError', async () => {
    const { left, right } = await pair()
    const [atLeft] = await Promise.all([hear(left), hear(right)])
    await right.close()
    await atLeft.until(isClosed)
    await expect(left.send('{"late":true}')).rejects.toBeInstanceOf(ConnectionError)
  })
}

function numbered(word: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `{"${word}":${at}}`)
}

function hasFrames(count: number): (heard: Heard) => boolean {
  return heard => heard.frames.length >= count
}

function isClosed(heard: Heard): boolean {
  return heard.closes.length > 0
}
