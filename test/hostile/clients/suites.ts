/** Which attacks go to which listener. */
import type { HostileCase, HostileSuite } from '../case.ts'
import { type Attack, badly, openArena } from './attack.ts'
import { aimAttacks, idAttacks } from './correlation.ts'
import { keyAttacks, sizeAttacks, textAttacks } from './data.ts'
import { bulkAttacks, oddAttacks } from './edge-load.ts'
import { contentAttacks, namesAttacks, smugglingAttacks } from './edge-requests.ts'
import { headerAttacks } from './envelope.ts'
import { fireAt, pipeAttacks } from './pipe.ts'
import { openPipe } from './pipe-line.ts'
import { batchAttacks, envelopeAttacks, parameterAttacks, namesAttacks as registryAttacks } from './semantics.ts'
import { sessionAttacks } from './sessions.ts'
import { socketAttacks } from './sockets.ts'
import { pipelined, streamAttacks } from './streams.ts'
import { caseOf } from './watch.ts'
import { type Era, eras } from './wire.ts'

const edge: readonly Attack[] = [...contentAttacks, ...namesAttacks, ...smugglingAttacks, ...bulkAttacks, ...oddAttacks]
const messages: readonly Attack[] = [
  ...textAttacks,
  ...keyAttacks,
  ...sizeAttacks,
  ...envelopeAttacks,
  ...batchAttacks,
  ...registryAttacks,
  ...parameterAttacks,
  ...aimAttacks,
  ...idAttacks,
]
const lasting: readonly Attack[] = [...sessionAttacks, ...streamAttacks, pipelined]

/** What is fired at a listener of this kind, in the order of keys. */
export function attacksOn(era: Era): readonly Attack[] {
  const front = era.carrier === 'websocket' ? socketAttacks : edge
  const found = [...front, ...messages, ...lasting, ...headerAttacks].filter(attack => attack.fits?.(era) !== false)
  return found.sort((a, b) => a.key.localeCompare(b.key))
}

function listenerSuite(era: Era): HostileSuite {
  return {
    title: era.title,
    open: async () => {
      const { arena, healthy, close } = await openArena(era)
      return { cases: attacksOn(era).map(attack => caseOf(attack, arena, healthy)), close }
    },
  }
}

function pipeSuite(era: Era): HostileSuite {
  const cases = pipeAttacks.map((attack): HostileCase => {
    const run = async () => {
      const pipe = await openPipe(era, attack.unrated === true)
      try {
        return await fireAt(attack, pipe)
      } catch (error) {
        return badly(error instanceof Error ? error.message : String(error))
      } finally {
        await pipe.target.stop()
      }
    }
    return { key: attack.key, name: attack.name, run, ...(attack.patient === true ? { patient: true } : {}) }
  })
  return { title: era.title, open: () => Promise.resolve({ cases, close: () => Promise.resolve() }) }
}

export const hostileClients: readonly HostileSuite[] = [
  ...[eras.modern, eras.sessions, eras.sessionless, eras.batches, eras.pair, eras.websocket].map(listenerSuite),
  ...[eras.pipe, eras.modernPipe].map(pipeSuite),
]
