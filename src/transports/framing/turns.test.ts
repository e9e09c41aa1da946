import { expect, it } from 'vitest'
import { FrameTurns } from './stream.ts'

/** A reader of many frames, which may be told to rest; what it took in each turn. */
async function read(frames: readonly string[]): Promise<{ taken: string[]; turns: number[] }> {
  const taken: string[] = []
  const turns: number[] = []
  let resting = false
  let at = 0
  let inTurn = 0
  const turn = new FrameTurns(
    { frame: text => taken.push(text), fault: () => {} },
    () => {
      resting = true
    },
    () => {
      resting = false
    },
  )
  while (at < frames.length) {
    while (at < frames.length && !resting) {
      turn.frame(frames[at++] ?? '')
      inTurn++
    }
    turns.push(inTurn)
    inTurn = 0
    await new Promise(setImmediate)
  }
  return { taken, turns }
}

it('short frames are taken 256 in a turn, and none is lost', async () => {
  const frames = Array.from({ length: 1_000 }, (_, index) => `${index}`)
  const { taken, turns } = await read(frames)
  expect(taken).toEqual(frames)
  expect(Math.max(...turns)).toBeLessThanOrEqual(257)
  expect(turns.length).toBeGreaterThan(3)
})

it('of long frames so many as make a mebibyte', async () => {
  const { turns } = await read(Array.from({ length: 100 }, () => 'x'.repeat(100_000)))
  expect(Math.max(...turns)).toBeLessThanOrEqual(11)
})

it('a few frames are taken at once, turn after turn', async () => {
  expect((await read(Array.from({ length: 100 }, () => 'x'))).turns).toEqual([100])
})
