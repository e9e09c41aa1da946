/** How often each model is played: a few seconds' worth, or as often as VIVARIUM_MODEL_RUNS says. */
import fc from 'fast-check'

const asked = Number(process.env['VIVARIUM_MODEL_RUNS'] ?? 0)

export const modelRuns = asked > 0 ? asked : 150
/** Enough for that, on a busy machine. */
export const modelTimeoutMs = Math.max(30_000, modelRuns * 60)

/** Plays commands against the real thing and the model. `start` makes both anew. */
export async function playModel<Model extends object, Real>(
  commands: readonly fc.Arbitrary<fc.AsyncCommand<Model, Real>>[],
  start: () => Promise<{ model: Model; real: Real; end: () => Promise<void> }>,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.commands([...commands], { maxCommands: 40, size: 'max' }), async plan => {
      const { model, real, end } = await start()
      try {
        await fc.asyncModelRun(async () => ({ model, real }), plan)
      } finally {
        await end()
      }
    }),
    { numRuns: modelRuns },
  )
}

/** A command from two functions; its name is shown when a run fails. */
export function command<Model extends object, Real>(
  name: string,
  run: (model: Model, real: Real) => Promise<void>,
  check: (model: Readonly<Model>) => boolean = () => true,
): fc.AsyncCommand<Model, Real> {
  return { check, run, toString: () => name }
}

export function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
