/** The attacks of `npm run hostile` that take no time, each a test: against every listener those that concern it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HostileCase } from './case.ts'
import { openArena } from './clients/attack.ts'
import { attacksOn } from './clients/suites.ts'
import { caseOf } from './clients/watch.ts'
import { type Era, eras } from './clients/wire.ts'

/** The whole list for each era of HTTP; elsewhere what only that carrier can get wrong. */
const listeners: readonly (readonly [Era, RegExp])[] = [
  [eras.modern, /./],
  [eras.sessions, /^[CD]/],
  [eras.batches, /^C(19|2\d)|^D0/],
  [eras.sessionless, /^D|^C(16|23)/],
  [eras.pair, /^(A(01|08|13)|B(01|04|12)|C(16|23)|D)/],
  [eras.websocket, /^W|^C(16|23)/],
]

describe.each(listeners)('$title', (era, keys) => {
  let close = async (): Promise<void> => {}
  const cases = new Map<string, HostileCase>()
  const attacks = attacksOn(era).filter(({ key, patient, heavy }) => keys.test(key) && patient !== true && heavy !== true)

  beforeAll(async () => {
    const opened = await openArena(era)
    close = opened.close
    // Memory is a figure, and figures are judged by `npm run hostile`.
    for (const { memory: _, ...attack } of attacks) cases.set(attack.name, caseOf(attack, opened.arena, opened.healthy))
  })
  afterAll(() => close())

  it.each(attacks.map(({ key, name }) => [key, name] as const))('%s: %s', async (_key, name) => {
    const verdict = await cases.get(name)?.run()
    expect(verdict).toMatchObject({ well: true, detail: expect.any(String) })
  })
})
