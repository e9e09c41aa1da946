/** What two builds are compared by: servers, their start and sessions, clients, gateways, calls under keys, events, streams and tasks. */
import { AnswerCheck } from '../answers.ts'
import type { Carrier, Contender } from '../contenders.ts'
import { openHttp } from '../load/http.ts'
import { startHttp } from '../load/http-server.ts'
import { openStdio } from '../load/stdio.ts'
import { type Options, wanted } from '../options.ts'
import { coldStart } from '../sections/cold.ts'
import { direct, gatewayBefore } from '../sections/gateway.ts'
import { measureContender } from '../sections/sessions.ts'
import { sampleOf } from '../turns.ts'
import { type Revision, type Work, works } from '../work.ts'
import type { Build } from './builds.ts'
import { clientSubjects } from './client-subjects.ts'
import type { Subject, Worker } from './compare.ts'
import { extensionSubjects } from './extension-subjects.ts'

const IN_FLIGHT = 32
const REVISIONS: readonly Revision[] = ['2025-11-25', '2026-07-28']
const CARRIERS: readonly Carrier[] = ['stdio', 'http']

/** In the order in which they are measured. `--only` restricts them as it does the rows of the whole bench. */
export function subjectsFor(options: Options): readonly Subject[] {
  const places = CARRIERS.flatMap(carrier => REVISIONS.map(revision => ({ carrier, revision }))).filter(
    ({ carrier, revision }) => wanted(options, carrier) && wanted(options, revision),
  )
  const revisions = REVISIONS.filter(revision => wanted(options, revision))
  const chosen = works.filter(work => wanted(options, work.name))
  const all = [
    ...places.flatMap(({ carrier, revision }) => chosen.flatMap(work => serverSubjects(options, carrier, revision, work))),
    ...places.map(({ carrier, revision }) => coldSubject(carrier, revision)),
    sessionSubject(options),
    ...clientSubjects(places),
    ...revisions.flatMap(revision =>
      chosen.filter(({ name }) => /^(echo|form20)$/.test(name)).map(work => gatewaySubject(revision, work)),
    ),
    ...extensionSubjects(revisions),
  ]
  return all.filter(({ section }) => wanted(options, section))
}

function contenderFrom({ flags }: Build, language: string): Contender {
  return {
    name: 'vivarium',
    stdio: REVISIONS,
    http: REVISIONS,
    flags,
    script: () => 'servers/vivarium.mjs',
    args: (carrier, mode, revision) => [carrier, mode, revision, language],
  }
}

function serverSubjects(options: Options, carrier: Carrier, revision: Revision, work: Work): readonly Subject[] {
  const languages = /^(echo|form20)$/.test(work.name) ? ['zod', 'json'] : ['zod']
  return languages.map(language => ({
    section: 'server',
    name: `${carrier} ${revision} ${work.name} ${language}`,
    unit: 'µs',
    open: async build => {
      const open = carrier === 'stdio' ? openStdio : openHttp
      const list = work.name === 'list200'
      const target = await open(contenderFrom(build, language), list ? 'list' : 'tools', revision)
      const check = new AnswerCheck(work, revision)
      const inFlight = list ? options.timing.listInFlight : IN_FLIGHT
      return { sample: async ms => sampleOf(await target.run(work, check, inFlight, ms)), stop: target.stop }
    },
  }))
}

/** Each sample is a start of its own: a process has only one. */
function coldSubject(carrier: Carrier, revision: Revision): Subject {
  return {
    section: 'cold',
    name: `${carrier} ${revision === '2026-07-28' ? 'discover' : 'initialize'}, CPU to the first answer`,
    unit: 'µs',
    whole: true,
    open: async build => ({
      sample: async () => ({ cost: (await coldStart(carrier, contenderFrom(build, 'json'), revision)).cpuMicros, count: 1 }),
      stop: async () => {},
    }),
  }
}

function sessionSubject({ timing }: Options): Subject {
  return {
    section: 'sessions',
    name: 'an idle session, heap',
    unit: 'bytes',
    whole: true,
    open: async build => ({
      sample: async () => ({ cost: (await measureContender(contenderFrom(build, 'json'), timing.sessions)).heapBytes, count: 1 }),
      stop: async () => {},
    }),
  }
}

/** The server behind is this build's, whichever the gateway's: only the gateway is compared. */
function gatewaySubject(revision: Revision, work: Work): Subject {
  return {
    section: 'gateway',
    name: `${revision} ${work.name}`,
    unit: 'µs',
    warmUps: 4,
    open: async ({ flags }): Promise<Worker> => {
      const behind = await startHttp(direct, 'tools', revision)
      const target = await openHttp({ ...gatewayBefore({ bench: behind.port }), flags }, 'tools', revision)
      const check = new AnswerCheck(work, revision)
      return {
        sample: async ms => sampleOf(await target.run(work, check, IN_FLIGHT, ms)),
        stop: async () => {
          await target.stop()
          await behind.child.stop()
        },
      }
    },
  }
}
