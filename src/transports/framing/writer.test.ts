import { Writable } from 'node:stream'
import { setImmediate as nextRound } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { queueLimits } from './limits.ts'
import { Writer } from './writer.ts'

/** A stream that notes each write and finishes it only when told to. */
function slowOutput(highWaterMark: number) {
  const writes: string[] = []
  const pending: (() => void)[] = []
  const output = new Writable({
    highWaterMark,
    write(chunk: Buffer, _encoding, done) {
      writes.push(chunk.toString())
      pending.push(done)
    },
  })
  return { output, writes, finish: () => pending.shift()?.() }
}

function open(highWaterMark = 1_000_000, limits = queueLimits) {
  const told: string[] = []
  const { output, writes, finish } = slowOutput(highWaterMark)
  const owner = { full: () => told.push('full'), free: () => told.push('free'), stalled: () => told.push('stalled') }
  const writer = new Writer({ output, owner, limits })
  /** Lets the stream take everything. */
  async function readAll() {
    for (let idle = 0; idle < 3; idle++) {
      if (output.writableLength > 0) idle = 0
      finish()
      await nextRound()
    }
  }
  return { writer, writes, told, finish, readAll }
}

describe('Writer', () => {
  it('writes all frames of one turn with one write', async () => {
    const { writer, writes } = open()
    writer.send('1')
    writer.send('2')
    await Promise.resolve()
    writer.send('3')
    expect(writes).toEqual([])
    await nextRound()
    expect(writes).toEqual(['1\n2\n3\n'])
  })

  it('writes at the end of the chunk when everything in it was answered', () => {
    const { writer, writes } = open()
    writer.hold()
    writer.send('answer 1')
    writer.send('answer 2')
    writer.release(2)
    expect(writes).toEqual(['answer 1\nanswer 2\n'])
  })

  it('waits for the answers of this round that are still under way, and writes them together', async () => {
    const { writer, writes } = open()
    writer.hold()
    writer.send('answer 1')
    writer.release(2)
    expect(writes).toEqual([])
    await Promise.resolve()
    writer.send('answer 2')
    await nextRound()
    expect(writes).toEqual(['answer 1\nanswer 2\n'])
  })

  it('does not let the answer to a lone frame wait for the next round', async () => {
    const { writer, writes } = open()
    writer.hold()
    writer.release(1)
    await Promise.resolve()
    writer.send('answer')
    await new Promise<void>(done => process.nextTick(done))
    expect(writes).toEqual(['answer\n'])
  })

  it('keeps frames back while the stream is full, and sends them in order, together, when it has drained', async () => {
    const { writer, writes, finish } = open(10)
    writer.send('more than ten')
    await nextRound()
    for (const frame of ['a', 'b', 'c']) writer.send(frame)
    await nextRound()
    expect(writes).toEqual(['more than ten\n'])
    finish()
    await nextRound()
    expect(writes).toEqual(['more than ten\n', 'a\nb\nc\n'])
  })

  it('merges frames only while the stream is full', async () => {
    const { writer, writes, readAll } = open(10)
    writer.send('progress 1', 'p')
    writer.send('progress 2', 'p')
    await nextRound()
    writer.send('progress 3', 'p')
    writer.send('progress 4', 'p')
    writer.send('answer')
    await readAll()
    expect(writes.join('')).toBe('progress 1\nprogress 2\nprogress 4\nanswer\n')
  })

  it('keeps the order when frames are sent from within the news that there is room again', async () => {
    const { output, writes, finish } = slowOutput(10)
    let sent = false
    const sendOnce = () => {
      if (!sent) writer.send('from within')
      sent = true
    }
    const owner = { full: () => {}, free: sendOnce, stalled: () => {} }
    const writer = new Writer({ output, owner, limits: { ...queueLimits, queueBytes: 20 } })
    writer.send('blocks the stream')
    await nextRound()
    for (const frame of ['first waiting', 'second waiting', 'third waiting']) writer.send(frame)
    finish()
    await nextRound()
    finish()
    await nextRound()
    expect(writes.join('')).toBe('blocks the stream\nfirst waiting\nsecond waiting\nthird waiting\nfrom within\n')
  })

  it('hands a large frame over in pieces, never more than the stream asks for', async () => {
    const { writer, writes, readAll } = open(16 * 1024)
    const frame = JSON.stringify('🙂è'.repeat(200_000))
    writer.send(frame)
    await nextRound()
    const first = writes.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    expect(first).toBeLessThan(300_000)
    await readAll()
    expect(writes.length).toBeGreaterThan(3)
  })

  it('says when too much waits', async () => {
    const { writer, told } = open(10, { queueBytes: 20, spareCeiling: 50, queueCeiling: 50, stallMs: 10_000 })
    writer.send('blocks the stream')
    await nextRound()
    expect(writer.send('x'.repeat(30))).toBe(true)
    expect(told).toEqual(['full'])
    expect(writer.send('x'.repeat(30))).toBe(false)
  })

  it('writes a frame with line breaks between its tokens as one line', async () => {
    const { writer, writes } = open()
    writer.send('{\r\n  "a": 1\n}')
    await nextRound()
    expect(writes).toEqual(['{   "a": 1 }\n'])
  })

  it('is emptied only when the stream has taken the last byte', async () => {
    const { writer, writes, readAll } = open(10)
    let emptied = false
    writer.send('blocks the stream')
    await nextRound()
    writer.send('waits')
    const done = writer.emptied().then(() => (emptied = true))
    await nextRound()
    expect(emptied).toBe(false)
    await readAll()
    await done
    expect(writes.join('')).toBe('blocks the stream\nwaits\n')
  })
})
