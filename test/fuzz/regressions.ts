/**
 * Inputs that once failed, tried at every run of the tests. Each is made by the generators as they are now, so a change of those
 * makes it another input; what was wrong is held by a sentence beside the code as well.
 */

export interface Regression {
  readonly target: string
  readonly seed: number
  readonly input: number
  /** What was wrong. */
  readonly was: string
}

const unprintable = 'an object whose toString is no function'

export const regressions: readonly Regression[] = [
  { target: 'lines', seed: 11, input: 94, was: 'a blank that is none in JSON was dropped behind a blank that is one' },
  { target: 'lines', seed: 1, input: 1, was: 'a line of such blanks was read otherwise than by the model' },
  { target: 'headers', seed: 11, input: 146, was: `${unprintable}, mirrored` },
  { target: 'headers', seed: 11, input: 10_874, was: `a list with ${unprintable}, mirrored` },
  { target: 'sse', seed: 1, input: 1_031, was: 'tiny lines, each decoded by itself, took too long' },
  { target: 'client@2026-07-28', seed: 11, input: 86, was: `${unprintable} among the texts of a result` },
  { target: 'client@2026-07-28', seed: 11, input: 470, was: 'null for a task' },
  { target: 'client@2026-07-28', seed: 11, input: 884, was: `${unprintable} as the kind of a result` },
  { target: 'client@2026-07-28', seed: 798_353_729, input: 647, was: `${unprintable} among the versions of a server` },
  { target: 'client@draft-2026-v1', seed: 11, input: 604, was: `${unprintable} as the kind of a prompt` },
  { target: 'live', seed: 819_602_249, input: 1_967, was: `${unprintable} as the place of an injection` },
]
