/** The attacks of `npm run hostile` on stdio that take no time, each a test, in both eras. */
import { describe, expect, it } from 'vitest'
import { fireAt, pipeAttacks } from './clients/pipe.ts'
import { openPipe } from './clients/pipe-line.ts'
import { eras } from './clients/wire.ts'

// What is judged by memory is a figure, and figures are `npm run hostile`'s.
const quick = pipeAttacks.filter(({ heavy, memory }) => heavy !== true && memory === undefined)

describe.each([eras.pipe, eras.modernPipe])('$title', era => {
  it.each(quick)('$key: $name', async attack => {
    const pipe = await openPipe(era, attack.unrated === true)
    try {
      expect(await fireAt(attack, pipe)).toMatchObject({ well: true })
    } finally {
      await pipe.target.stop()
    }
  })
})
