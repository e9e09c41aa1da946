/** Inputs that once failed, by their choices: they are tried at every run of the tests. */

export interface Regression {
  readonly target: string
  /** What was wrong. */
  readonly was: string
  readonly choices: readonly number[]
}

export const regressions: readonly Regression[] = []
