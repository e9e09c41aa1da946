/** Judges the reference server with one fault in it, by some scenarios. */
import { startReference } from '../../../examples/reference/start.ts'
import { judge, type Result, scenarios } from '../../../src/conformance/index.ts'
import { faultyAcceptor } from './box.ts'
import type { Mutation } from './mutation.ts'
import { webBox } from './web-box.ts'

type Trial = Pick<Mutation, 'revision' | 'fault' | 'web' | 'options'> & { readonly overHttp?: boolean }

/** The results of the scenarios with these ids, or of all. */
export async function tried(trial: Trial, ids?: readonly string[]): Promise<readonly Result[]> {
  const { server, url } = await startReference(trial.options)
  const box = trial.web === undefined ? undefined : await webBox(url, trial.web())
  const acceptor = trial.fault === undefined ? server.acceptor : faultyAcceptor(server.acceptor, trial.fault())
  try {
    const chosen = ids === undefined ? scenarios : scenarios.filter(({ id }) => ids.includes(id))
    const places = box !== undefined || trial.overHttp === true ? { http: box?.url ?? url } : { memory: acceptor }
    const { results } = await judge(places, {
      scenarios: chosen,
      allowWrites: true,
      revisions: [trial.revision],
      scenarioMs: 25_000,
    })
    return results
  } finally {
    await box?.close()
    await server.close()
  }
}
