/** Load over stdio: pipelined lines, as many new requests in one write as answers came in one read. */
import type { AnswerCheck } from '../answers.ts'
import type { Contender, Mode } from '../contenders.ts'
import { launch, STEP_MS, within } from '../processes.ts'
import { envelope, initialized, opening, type Revision, type Work } from '../work.ts'
import { lineReader } from './lines.ts'
import { nextId, Round, type RoundResult, watch } from './round.ts'
import type { Target } from './target.ts'
import { Template } from './template.ts'

/** Starts a contender over stdio and does the handshake its revision asks for. */
export async function openStdio(contender: Contender, mode: Mode, revision: Revision): Promise<Target> {
  const child = launch(contender.script('stdio'), contender.args('stdio', mode, revision), contender.flags)
  const { stdin, stdout } = child.process
  let receive: (lines: Buffer[]) => void = () => {}
  stdout.on(
    'data',
    lineReader(lines => receive(lines)),
  )

  function exchange(message: Record<string, unknown>): Promise<Record<string, unknown>> {
    const answer = new Promise<Record<string, unknown>>(resolve => {
      receive = lines => {
        for (const line of lines) {
          const response = JSON.parse(line.toString()) as Record<string, unknown>
          if (response.id === message.id) resolve(response)
        }
      }
    })
    stdin.write(`${JSON.stringify(message)}\n`)
    return within(STEP_MS, contender.name, Promise.race([answer, child.gone]))
  }

  function run(work: Work, check: AnswerCheck, inFlight: number, ms: number): Promise<RoundResult> {
    const template = new Template(work, revision, () => '', '\n')
    const size = template.bytes.length
    const running = new Promise<RoundResult>((resolve, reject) => {
      const round = new Round(check, child.pid, ms)
      const unwatch = watch(round, fail)
      function fail(error: unknown): void {
        receive = () => {}
        unwatch()
        reject(error)
      }
      function send(count: number): void {
        const batch = Buffer.allocUnsafe(size * count)
        for (let index = 0; index < count; index++) {
          template.bytes.copy(batch, index * size)
          template.stamp(batch, index * size, round.issue())
        }
        stdin.write(batch)
      }
      receive = lines => {
        try {
          for (const line of lines) round.settle(line)
        } catch (error) {
          fail(error)
          return
        }
        if (!round.over) send(lines.length)
        else if (round.drained) {
          unwatch()
          resolve(round.result())
        }
      }
      send(inFlight)
    })
    return Promise.race([running, child.gone])
  }

  try {
    await exchange(opening(revision, nextId(), contender.handshake))
    if (revision === '2025-11-25') stdin.write(`${JSON.stringify(initialized)}\n`)
  } catch (error) {
    await child.stop()
    throw error
  }
  const ask = (method: string, params: object) => exchange(envelope(revision, nextId(), method, params))
  return { pid: child.pid, ask, run, stop: child.stop }
}
