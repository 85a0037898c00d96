/** A listener that speaks TLS and lets in one user, by SCRAM-SHA-512 or PLAIN. */
export interface SecureListener {
  /** PEM file with the private key (PKCS #8) and the certificate. */
  pemFile: string;
  username: string;
  /** Without quotes and commas. */
  password: string;
}

const SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule';
const PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule';

/** The lines of server.properties for the listener SECURE. */
export const secureProperties = ({ pemFile, username, password }: SecureListener): string[] => [
  'listener.name.secure.ssl.keystore.type=PEM',
  `listener.name.secure.ssl.keystore.location=${pemFile}`,
  'listener.name.secure.sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN',
  `listener.name.secure.scram-sha-512.sasl.jaas.config=${SCRAM} required;`,
  `listener.name.secure.plain.sasl.jaas.config=${PLAIN} required user_${username}="${password}";`,
];

/** The arguments of `kafka-storage format` that make the user known for SCRAM. */
export const scramArguments = ({ username, password }: SecureListener): string[] => [
  '--add-scram',
  `SCRAM-SHA-512=[name=${username},password=${password}]`,
];
