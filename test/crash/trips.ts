/** Sagas in the server under test, over itself and over a server that keeps nothing; and whatever earlier lives left of them is taken back. */
import type { Client, Saga } from 'vivarium/client'
import { createServer, jsonSchema, type Server } from 'vivarium/server'
import type { Store } from 'vivarium/stores'
import type { FastClock } from './fast-clock.ts'
import { named, worker } from './tools.ts'
import type { Witness } from './witness.ts'

const tripped = jsonSchema<{ id: string; commit: boolean }>({
  type: 'object',
  properties: { id: { type: 'string' }, commit: { type: 'boolean' } },
  required: ['id', 'commit'],
})
const resumeMs = 200

interface Clients extends Readonly<Record<string, Client>> {
  readonly own: Client
  readonly plain: Client
}

/** What it takes is loaded when the server listens already: its start is not the client's. */
export function offerTrips(server: Server, store: Store, witness: Witness, clock: FastClock): { close(): Promise<void> } {
  const plain = plainServer(witness)
  let connecting: Promise<Clients> | undefined
  const connected = (): Promise<Clients> => {
    connecting ??= connectBoth(server, plain)
    return connecting
  }
  const resume = async (): Promise<void> => {
    const [{ saga }, clients] = await Promise.all([import('vivarium/client'), connected()])
    await saga.resume({ store, clients, clock })
  }
  server.tool('trip', { input: tripped }, async ({ id, commit }) => {
    const [{ saga }, clients] = await Promise.all([import('vivarium/client'), connected()])
    const trip = await saga({ id, store, clients, clock })
    try {
      await travel(trip)
      return (commit ? await trip.commit() : await trip.rollback()).status
    } catch (error) {
      await trip.rollback()
      throw error
    }
  })
  let resuming: Promise<void> | undefined
  const timer = setInterval(() => {
    resuming ??= resume()
      .catch(error => console.error(error))
      .finally(() => {
        resuming = undefined
      })
  }, resumeMs)
  return {
    close: async () => {
      clearInterval(timer)
      await resuming
      const clients = await connecting
      await Promise.all([clients?.own.close(), clients?.plain.close(), plain.close()])
    },
  }
}

async function connectBoth(server: Server, plain: Server): Promise<Clients> {
  const { connectInMemory } = await import('vivarium/testing')
  const [own, other] = await Promise.all([connectInMemory(server), connectInMemory(plain)])
  return { own, plain: other }
}

async function travel(trip: Saga): Promise<void> {
  const undo = { tool: 'unmake' }
  await trip.step('own', 'make', { id: `${trip.id}.1` }, { undo })
  await trip.step('plain', 'make', { id: `${trip.id}.2` }, { undo })
  const byResult = ({ result }: { readonly result: unknown }) => (result === undefined ? undefined : { id: `${trip.id}.3` })
  await trip.step('own', 'mint', { id: `${trip.id}.3` }, { undo: { ...undo, arguments: byResult } })
}

/** Knows neither keys that last nor transactions. */
function plainServer(witness: Witness): Server {
  const work = worker(witness)
  const server = createServer({ name: 'plain', version: '1.0.0' })
  server.tool('make', { input: named }, async ({ id }) => {
    await work('make', id)
    return 'made'
  })
  server.tool('unmake', { input: named }, async ({ id }) => {
    await work('unmake', id)
    return 'unmade'
  })
  return server
}
