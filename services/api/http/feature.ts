import type { TSchema } from 'typebox';
import type { RejectionCode } from '../../../shared/domain/rejection.ts';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import type {
  ErrorResponse,
  ErrorResponses,
  RejectionResponse,
  RejectionResponses,
} from './errors/errorPresenter.ts';
import type { Route } from './route.ts';

/** A feature's part of the API. `services/api/features.ts` lists the features. */
interface ApiFeature {
  routes: readonly Route[];
  /** The error codes of the feature. */
  errors?: Readonly<Partial<Record<ErrorCode, ErrorResponse>>>;
  /** The rejections of the feature's deciders. */
  rejections?: Readonly<Partial<Record<RejectionCode, RejectionResponse>>>;
  /** The parameters in the paths of the feature's routes. */
  pathParameters?: Readonly<Record<string, TSchema>>;
  /** Descriptions of the tags in the OpenAPI document, by the first word of a path. */
  tags?: Readonly<Record<string, string>>;
}

/** All features as one API. */
export interface Api {
  routes: readonly Route[];
  errorResponses: ErrorResponses;
  rejections: RejectionResponses;
  pathParameters: Readonly<Record<string, TSchema>>;
  tags: Readonly<Record<string, string>>;
}

type KeysOf<Stated, Part extends string> =
  Stated extends Readonly<Record<Part, infer Table>> ? keyof Table : never;

type RepeatedKeys<Features, Part extends string, Seen = never> = Features extends readonly [
  infer First,
  ...infer Rest,
]
  ? (KeysOf<First, Part> & Seen) | RepeatedKeys<Rest, Part, Seen | KeysOf<First, Part>>
  : never;

/** Fails to compile, naming the codes, where no feature or more than one states a code. */
type Complete<Features extends readonly ApiFeature[]> = [
  (
    | Exclude<ErrorCode, KeysOf<Features[number], 'errors'>>
    | Exclude<RejectionCode, KeysOf<Features[number], 'rejections'>>
  ),
  RepeatedKeys<Features, 'errors'> | RepeatedKeys<Features, 'rejections'>,
] extends [infer Missing, infer Repeated]
  ? [Missing | Repeated] extends [never]
    ? unknown
    : { missingCodes: Missing; repeatedCodes: Repeated }
  : never;

/** Keeps the codes of a feature in its type. */
export const defineFeature = <const Stated extends ApiFeature>(feature: Stated): Stated => feature;

/** Merges features. Exactly one of them states each error code and each rejection. */
export function mergeFeatures<const Features extends readonly ApiFeature[]>(
  features: Features & Complete<Features>,
): Api {
  const list: readonly ApiFeature[] = features;
  const merge = <Part extends 'errors' | 'rejections' | 'pathParameters' | 'tags'>(part: Part) =>
    Object.assign({}, ...list.map((feature) => feature[part] ?? {})) as Required<ApiFeature>[Part];
  return {
    routes: list.flatMap(({ routes }) => routes),
    errorResponses: merge('errors') as ErrorResponses,
    rejections: merge('rejections') as RejectionResponses,
    pathParameters: merge('pathParameters'),
    tags: merge('tags'),
  };
}
