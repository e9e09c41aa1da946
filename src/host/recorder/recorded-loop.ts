/** The options of a loop whose session is recorded: the same ones, overheard. */
import type { Clock } from '../../core/clock.ts'
import type { LoopOptions } from '../loop/loop.ts'
import type { OnTurn } from '../loop/ports.ts'
import type { Model } from '../models/model.ts'
import { openRecorder, type Recorder } from './record.ts'

export type RecordedOptions = Pick<LoopOptions, 'model' | 'newId' | 'onTurn'>

/** Undefined where there is no file: nothing is recorded then. */
export function recorderFor(file: string | undefined, clock: Clock): Recorder | undefined {
  return file === undefined ? undefined : openRecorder(file, { clock })
}

export function recorded(recorder: Recorder | undefined, { model, newId, onTurn }: RecordedOptions): RecordedOptions {
  if (recorder === undefined) return { model, ...(newId && { newId }), ...(onTurn && { onTurn }) }
  const hear = (one: Model): Model => recorder.model(one)
  const both: OnTurn = (turn, said) => {
    recorder.onTurn(turn, said)
    onTurn?.(turn, said)
  }
  const [first, ...rest] = Array.isArray(model) ? (model as readonly [Model, ...Model[]]) : [model as Model]
  return { model: [hear(first), ...rest.map(hear)], newId: recorder.newId, onTurn: both }
}
