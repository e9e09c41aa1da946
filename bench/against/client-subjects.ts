/** The client side of a comparison: what a client's process spends on a call of the floor. */
import { type Carrier, floor } from '../contenders.ts'
import { startHttp } from '../load/http-server.ts'
import { openClient } from '../sections/clients.ts'
import type { Revision } from '../work.ts'
import type { Subject } from './compare.ts'

interface Place {
  readonly carrier: Carrier
  readonly revision: Revision
}

export function clientSubjects(places: readonly Place[]): readonly Subject[] {
  return places.flatMap(place => [1, 32].map(inFlight => clientSubject(place, inFlight)))
}

function clientSubject({ carrier, revision }: Place, inFlight: number): Subject {
  return {
    section: 'clients',
    name: `${carrier} ${revision} ×${inFlight}`,
    unit: 'µs',
    open: async ({ flags }) => {
      const server = carrier === 'http' ? await startHttp(floor, 'tools', revision) : undefined
      const place = { carrier, revision, url: `http://127.0.0.1:${server?.port}/mcp` }
      const { round, child, failed } = await openClient('vivarium', place, flags)
      if (round === undefined) throw new Error(failed)
      return {
        sample: async ms => {
          const { cpuMicros, calls } = await round(inFlight, ms)
          return { cost: cpuMicros, count: calls }
        },
        stop: async () => {
          await child.stop()
          await server?.child.stop()
        },
      }
    },
  }
}
