/**
 * `npm run hostile`: every hostile input against every listener and against our client, one line each.
 * `--only A13,C23` runs some keys (`A` stands for all of A), `--suite stdio` the suites whose title holds the word, `--short` what
 * `npm test` does not run already: hostile servers, and the places where rooms meet.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { boundaries } from './boundaries/suite.ts'
import type { HostileCase, HostileSuite, Verdict } from './case.ts'
import { figures } from './clients/figures.ts'
import { hostileClients } from './clients/suites.ts'
import { hostileServers } from './servers/suite.ts'

const { values } = parseArgs({
  options: { only: { type: 'string' }, suite: { type: 'string' }, short: { type: 'boolean', default: false } },
})
const only = values.only?.split(',').map(key => key.trim().toUpperCase())
const wanted = ({ key }: HostileCase): boolean =>
  only === undefined || only.some(each => key === each || key.replace(/\d+$/, '') === each)
const suites: readonly HostileSuite[] = [...(values.short ? [] : [...hostileClients, figures]), hostileServers, boundaries]

let good = 0
let total = 0
const started = performance.now()
for (const suite of suites.filter(({ title }) => title.toLowerCase().includes(values.suite?.toLowerCase() ?? '')))
  await runSuite(suite)
console.log(`${((performance.now() - started) / 1000).toFixed(0)} s`)
console.log(`${good} of ${total} handled well`)
process.exit(good === total && total > 0 ? 0 : 1)

async function runSuite(suite: HostileSuite): Promise<void> {
  const began = performance.now()
  const { cases, close } = await suite.open()
  const chosen = cases.filter(wanted)
  if (chosen.length > 0) console.log(`\n${suite.title}`)
  let well = 0
  const tell = (hostile: HostileCase, verdict: Verdict): void => {
    if (verdict.well) well++
    console.log(`${verdict.well ? '✓' : '✗'} ${hostile.key} ${hostile.name} · ${verdict.detail}`)
  }
  // What mostly waits does so beside the rest, and is told of in its turn.
  const waiting = new Map(chosen.filter(({ patient }) => patient === true).map(hostile => [hostile, attempt(hostile)]))
  const slow: HostileCase[] = []
  for (const hostile of chosen) {
    if (waiting.has(hostile)) continue
    const verdict = await attempt(hostile)
    if (verdict.slow === true) slow.push(hostile)
    else tell(hostile, verdict)
  }
  for (const [hostile, verdict] of waiting) tell(hostile, await verdict)
  for (const hostile of slow) tell(hostile, await atAnotherMoment(hostile))
  await close()
  if (chosen.length > 0) console.log(`${well} of ${chosen.length} in ${((performance.now() - began) / 1000).toFixed(1)} s`)
  good += well
  total += chosen.length
}

/** What was too slow while others may have been busy is tried again after pauses; one that stays slow is not handled well. */
async function atAnotherMoment(hostile: HostileCase): Promise<Verdict> {
  for (const pauseMs of [0, 10_000, 20_000]) {
    await sleep(pauseMs)
    const verdict = await attempt(hostile)
    if (verdict.slow !== true) return verdict
  }
  return await attempt(hostile)
}

/** A case that fails by itself is not handled well either. */
async function attempt(hostile: HostileCase): Promise<Verdict> {
  try {
    return await hostile.run()
  } catch (error) {
    return { well: false, detail: error instanceof Error ? error.message : String(error) }
  }
}
