/** The attacks of `npm run hostile` on stdio that take no time, each a test, in both eras. */
import { describe, expect, it } from 'vitest'
import { fireAt, pipeAttacks } from './clients/pipe.ts'
import { openPipe } from './clients/pipe-line.ts'
import { eras } from './clients/wire.ts'

const quick = pipeAttacks.filter(({ heavy }) => heavy !== true)

describe.each([eras.pipe, eras.modernPipe])('$title', era => {
  // Memory is a figure, and figures are judged by `npm run hostile`.
  it.each(quick)('$key: $name', async ({ memory: _, ...attack }) => {
    const pipe = await openPipe(era, attack.unrated === true)
    try {
      expect(await fireAt(attack, pipe)).toMatchObject({ well: true })
    } finally {
      await pipe.target.stop()
    }
  })
})
