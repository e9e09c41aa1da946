/**
 * One life of a server under test: `node life.ts '{"store": …}'`. Says its address when it listens, lives until its input ends,
 * or dies by its own hand at the failpoint that it was given.
 */
import { createServer, oauth } from 'vivarium/server'
import { openStore, type Store } from 'vivarium/stores'
import { type Death, withFailpoint, withNames } from './failpoints.ts'
import { fastClock, inFastTime } from './fast-clock.ts'
import { lyingStore } from './lying-store.ts'
import { offer } from './tools.ts'
import { offerTrips } from './trips.ts'
import { openWitness } from './witness.ts'

export interface LifeSpec {
  readonly store: string
  /** The file of effects. */
  readonly witness: string
  /** From when fast time is reckoned. */
  readonly epoch: number
  readonly death?: Death
  /** Whether its store says "written" too early. */
  readonly lies?: boolean
}

const spec = JSON.parse(process.argv[2] ?? '{}') as LifeSpec
const clock = fastClock(spec.epoch)
const witness = openWitness(spec.witness)
const store = await open(spec)
const server = createServer({
  name: 'crash',
  version: '1.0.0',
  store,
  clock,
  secret: 'the same for all lives of a campaign, 32 or more',
  // Sessions outlast the campaign, also in fast time.
  limits: { rates: false, sessionIdleMs: 86_400_000 },
})
offer(server, store, witness)
const trips = offerTrips(server, store, witness, clock)
// Who calls is whoever the token names.
const auth = oauth({ issuer: 'https://issuer.invalid', verify: token => ({ subject: token }) })
const { url } = await server.listen({ port: 0, auth })
process.stdout.write(`${url}\n`)
process.stdin.resume().once('end', async () => {
  await trips.close()
  await server.close()
  await store.close()
  process.exit(0)
})

async function open({ store: url, death, lies = false }: LifeSpec): Promise<Store> {
  const opened = await openStore(url, { now: clock.now })
  const timed = url.startsWith('postgres') ? inFastTime(opened, spec.epoch) : opened
  const honest = lies ? await lyingStore(timed) : timed
  const told = withNames(honest, name => witness.saw('unaimed', name))
  return death === undefined ? told : withFailpoint(told, death, () => process.kill(process.pid, 'SIGKILL'))
}
