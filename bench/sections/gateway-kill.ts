/** Kills one of two servers behind a gateway under load: whose calls fail, with what words, and how soon it is back after its return. */
import { connect } from '../../src/client/index.ts'
import type { Contender } from '../contenders.ts'
import { startHttp } from '../load/http-server.ts'
import type { Options } from '../options.ts'
import type { GatewayKillFigures } from '../results.ts'
import { gatewayBefore } from './gateway.ts'

const LOOPS = 16
/** How long it is given to come back. */
const MOST_MS = 15_000

function server(name: string, port: number): Contender {
  return { name, stdio: [], http: ['2026-07-28'], script: () => 'servers/one-tool.mjs', args: () => [name, String(port)] }
}

interface Tally {
  fine: number
  /** Failed with a problem that names the server. */
  told: number
  /** Failed otherwise, or answered wrongly. */
  wrong: number
  slowestMs: number
  lastFine: number
  why: string | undefined
}

const fresh = (): Tally => ({ fine: 0, told: 0, wrong: 0, slowestMs: 0, lastFine: 0, why: undefined })

export async function killUnderLoad({ timing }: Options): Promise<GatewayKillFigures> {
  const start = (name: string, port = 0) => startHttp(server(name, port), 'tools', '2026-07-28')
  const [keeps, dies] = [await start('keeps'), await start('dies')]
  const running = [keeps.child, dies.child]
  const gateway = await startHttp(gatewayBefore({ keeps: keeps.port, dies: dies.port }), 'tools', '2026-07-28')
  running.push(gateway.child)
  const client = await connect(`http://127.0.0.1:${gateway.port}/mcp`)
  const stop = { now: false }
  const tallies = { keeps: fresh(), dies: fresh() }
  const call = async (name: 'keeps' | 'dies', text: string): Promise<void> => {
    const tally = tallies[name]
    const began = performance.now()
    try {
      const { text: said, isError, problem } = await client.callTool(`${name}_echo`, { text })
      const names = JSON.stringify(problem?.details ?? {}).includes(`"${name}"`)
      if (!isError && said === text) {
        tally.fine++
        tally.lastFine = performance.now()
      } else if (isError && names) tally.told++
      else tally.wrong++
      if (isError && !names) tally.why ??= said
    } catch (error) {
      // A tool of a server that is down is not there, and says whose it is.
      if (String(error).includes(`"${name}"`)) tally.told++
      else {
        tally.wrong++
        tally.why ??= String(error)
      }
    }
    tally.slowestMs = Math.max(tally.slowestMs, performance.now() - began)
  }
  const loop = async (name: 'keeps' | 'dies', i: number): Promise<void> => {
    for (let n = 0; !stop.now; n++) {
      await call(name, `${i} ${n}`)
      if (name === 'dies') await new Promise(resolve => setTimeout(resolve, 1))
    }
  }
  try {
    const loops = Array.from({ length: LOOPS }, (_, i) => [loop('keeps', i), loop('dies', i)]).flat()
    const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))
    await pause(timing.roundMs)
    process.kill(dies.child.pid, 'SIGKILL')
    await pause(timing.roundMs * 2)
    tallies.keeps.slowestMs = 0
    const returned = performance.now()
    const again = await start('dies', dies.port)
    running.push(again.child)
    const up = performance.now()
    tallies.dies.lastFine = 0
    while (tallies.dies.lastFine === 0 && performance.now() - up < MOST_MS) await pause(10)
    const backMs = tallies.dies.lastFine === 0 ? Number.NaN : tallies.dies.lastFine - up
    await pause(timing.roundMs)
    stop.now = true
    await Promise.all(loops)
    const { keeps: kept, dies: died } = tallies
    if (kept.wrong + kept.told > 0) throw new Error(`${kept.wrong + kept.told} calls of the other server failed: ${kept.why}`)
    if (died.wrong > 0) throw new Error(`${died.wrong} calls failed without saying whose server is down: ${died.why}`)
    return { otherFine: kept.fine, otherFailed: kept.wrong + kept.told, told: died.told, backMs, startMs: up - returned }
  } finally {
    stop.now = true
    await client.close()
    for (const child of running) await child.stop()
  }
}
