import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Keeps every event in a file of its own: KAFKA_GROUP=mine java -cp 'lib/*' Consumer.java events/
 *
 * Offsets are committed after what they stand for is stored. So a crash makes Kafka deliver some
 * events again, and those are written over themselves, because an event's id names its file. What
 * goes wrong ends it; started again, it goes on.
 */
public final class Consumer {
  public static void main(String[] arguments) throws Exception {
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
    Path folder = Path.of(arguments.length > 0 ? arguments[0] : "events");
    List<String> topics =
        List.of(
            option("KAFKA_AGENTS_TOPIC", "turnlog.agents.v1"),
            option("KAFKA_SESSIONS_TOPIC", "turnlog.sessions.v1"));
    Map<String, Object> settings =
        Map.of(
            "bootstrap.servers", option("KAFKA_BROKERS", "127.0.0.1:9092"),
            // A name that stays goes on where it was. Consumers of one name share the partitions,
            // and soon take over what a dead one has left.
            "group.id", option("KAFKA_GROUP", "turnlog-example-java"),
            "session.timeout.ms", 6_000,
            "auto.offset.reset", "earliest",
            // Aborted transactions stay in the topic; only what was committed counts.
            "isolation.level", "read_committed",
            // Nothing is committed that is not stored yet.
            "enable.auto.commit", false,
            // The relay makes the topics, with the partitions that they need.
            "allow.auto.create.topics", false,
            // How soon it sees topics that are made later.
            "metadata.max.age.ms", 5_000);

    try (var consumer =
        new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
      Thread main = Thread.currentThread();
      Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(consumer, main)));
      consumer.subscribe(topics);
      while (true) {
        // All events of a key are in one partition, and those of a partition come in order.
        for (var event : consumer.poll(Duration.ofSeconds(1))) store(event, folder);
        // Only now: after a crash before this line they come again. So they do if this is lost.
        consumer.commitAsync();
      }
    } catch (WakeupException stopped) {
      // Asked to stop. The consumer is closed.
    }
  }

  /** Stores an event so that doing it again changes nothing, and never half of one. */
  private static void store(ConsumerRecord<String, String> event, Path folder) throws Exception {
    // A tombstone of a compacted topic; the event before it said that all of the key was erased.
    if (event.value() == null) return;
    // Headers and fields that are not asked for here are passed over: more of them may come.
    String id = header(event, "ce_id");
    Path ofKey = Files.createDirectories(folder.resolve(event.key()));
    if (header(event, "ce_type").endsWith(".erased.v1")) removeAll(ofKey);
    Path partial = ofKey.resolve(id + ".partial");
    Files.writeString(
        partial,
        event.value(),
        StandardOpenOption.CREATE,
        StandardOpenOption.TRUNCATE_EXISTING,
        StandardOpenOption.WRITE,
        StandardOpenOption.DSYNC);
    Files.move(partial, ofKey.resolve(id + ".json"), StandardCopyOption.ATOMIC_MOVE);
    System.out.println(
        String.join(" ", event.key(), header(event, "ce_streamrevision"), header(event, "ce_type"), id));
  }

  private static void removeAll(Path ofKey) throws Exception {
    try (var files = Files.newDirectoryStream(ofKey)) {
      for (Path file : files) Files.delete(file);
    }
  }

  private static String header(ConsumerRecord<String, String> event, String name) {
    return new String(event.headers().lastHeader(name).value(), StandardCharsets.UTF_8);
  }

  private static String option(String name, String otherwise) {
    return System.getenv().getOrDefault(name, otherwise);
  }

  /** Ends the poll, and waits until the consumer has told the brokers that it leaves. */
  private static void stop(KafkaConsumer<?, ?> consumer, Thread main) {
    consumer.wakeup();
    try {
      main.join(10_000);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
