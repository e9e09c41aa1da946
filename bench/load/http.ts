/** Load over HTTP: keep-alive connections with one request in flight on each. */
import type { AnswerCheck } from '../answers.ts'
import type { Contender, Mode } from '../contenders.ts'
import { STEP_MS, within } from '../processes.ts'
import { envelope, type Revision, type Work } from '../work.ts'
import { HttpConnection } from './http-connection.ts'
import { expectStatus, headFor, openSession, post, startHttp } from './http-server.ts'
import { nextId, Round, type RoundResult, watch } from './round.ts'
import type { Target } from './target.ts'
import { Template } from './template.ts'

/** Starts a contender over HTTP and opens a session where the revision has them. */
export async function openHttp(contender: Contender, mode: Mode, revision: Revision, flags?: readonly string[]): Promise<Target> {
  const { child, port } = await startHttp(contender, mode, revision, flags)
  const base = { port, revision, contender }
  let session: string | undefined

  async function ask(method: string, params: object & { name?: string }): Promise<Record<string, unknown>> {
    const connection = await HttpConnection.open(port)
    try {
      const message = envelope(revision, nextId(), method, params)
      const bytes = post({ ...base, session, method, tool: params.name }, message)
      const answer = await within(STEP_MS, contender.name, connection.exchange(bytes))
      return JSON.parse(answer.body.toString()) as Record<string, unknown>
    } finally {
      connection.close()
    }
  }

  async function run(work: Work, check: AnswerCheck, inFlight: number, ms: number): Promise<RoundResult> {
    const template = new Template(work, revision, headFor({ ...base, ...work, session }), '')
    // Opened anew each round: Node closes a connection idle for 5 s, and the other contenders' rounds take longer.
    const connections = await Promise.all(Array.from({ length: inFlight }, () => HttpConnection.open(port)))
    try {
      // A first answer on each connection, so that accepting them is not measured.
      await drive(connections, template, new Round(check, child.pid, 0))
      return await Promise.race([drive(connections, template, new Round(check, child.pid, ms)), child.gone])
    } finally {
      for (const connection of connections) connection.close()
    }
  }

  try {
    const connection = await HttpConnection.open(port)
    session = await openSession(connection, base)
    connection.close()
  } catch (error) {
    await child.stop()
    throw error
  }
  return { pid: child.pid, ask, run, stop: child.stop }
}

function drive(connections: readonly HttpConnection[], template: Template, round: Round): Promise<RoundResult> {
  return new Promise((resolve, reject) => {
    const unwatch = watch(round, fail)
    function fail(error: unknown): void {
      for (const connection of connections) connection.onAnswer = () => {}
      unwatch()
      reject(error)
    }
    for (const connection of connections) {
      const bytes = Buffer.from(template.bytes)
      let asked = 0
      const send = (): void => {
        asked = round.issue()
        template.stamp(bytes, 0, asked)
        connection.send(bytes)
      }
      connection.onFailure = fail
      connection.onAnswer = answer => {
        try {
          expectStatus(answer, 200)
          if (round.settle(answer.body) !== asked) throw new Error('an answer on the wrong connection')
        } catch (error) {
          fail(error)
          return
        }
        if (!round.over) send()
        else if (round.drained) {
          unwatch()
          resolve(round.result())
        }
      }
      send()
    }
  })
}
